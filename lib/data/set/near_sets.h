// Finds which of many 64-bit hashes are near each other, for pictures that look alike.
#pragma once

#include <cstdint>
#include <vector>

namespace scaletrain::data {

struct NearSets {
  // Numbers of hashes that differ in at most the distance, directly or through others; each set
  // ascending, the sets in the order of their first.
  std::vector<std::vector<std::uint32_t>> sets;
  std::uint64_t operations = 0;  // hashes that were looked at, and pairs that were compared
};

// Finds every pair that differs in at most `distance` bits (0 to 7): none is missed, whatever the
// hashes are. Takes 8 bytes a hash beside them.
//
// Equal hashes are one. The bits are divided into distance + 1 parts, at least one of which is
// equal in a near pair, so that only hashes with an equal part are compared (Manku, Jain, Das
// Sarma, "Detecting Near-Duplicates for Web Crawling", 2007, section 3); large groups are divided
// again by the bits in which they still differ. Hashes that are in one set already are left alone.
// The work grows about as the number of hashes up to distance 3, whatever they have in common; at 7
// it may still be a fifth of all pairs (tests/data/set/near_sets_test.cpp).
NearSets near_sets(const std::vector<std::uint64_t>& hashes, int distance);

}  // namespace scaletrain::data
