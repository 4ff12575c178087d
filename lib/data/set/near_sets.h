// Finds near-duplicate pictures: groups 64-bit hashes that differ in few bits.
#pragma once

#include <cstdint>
#include <vector>

namespace scaletrain::data {

struct NearSets {
  // Indices of hashes within the distance of each other, directly or through others. Each group is
  // ascending; groups are ordered by their first index.
  std::vector<std::vector<std::uint32_t>> sets;
  std::uint64_t operations = 0;  // hashes visited and pairs compared
};

// Finds every pair that differs in at most `distance` bits (0 to 7): none is missed, whatever the
// hashes are. Takes 8 bytes a hash beside them.
//
// Equal hashes count as one. The bits are divided into distance + 1 parts; in a near pair at least
// one part is equal, so only hashes with an equal part are compared (Manku, Jain, Das Sarma,
// "Detecting Near-Duplicates for Web Crawling", 2007, section 3). Large groups are divided again by
// the bits in which they still differ. Hashes already in one group are skipped. Up to distance 3
// the work grows about linearly with the number of hashes; at 7 it may reach a fifth of all pairs
// (tests/data/set/near_sets_test.cpp).
NearSets near_sets(const std::vector<std::uint64_t>& hashes, int distance);

}  // namespace scaletrain::data
