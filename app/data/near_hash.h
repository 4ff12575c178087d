// Images that look alike: a perceptual hash, and the pairs of a set whose hashes are near.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "lib/data/image.h"
#include "lib/data/resize.h"

namespace scaletrain::app {

// dHash (Krawetz, "Kind of Like That", 2013): 64 bits, each whether a pixel of the grey picture of
// 9 x 8 is darker than its right neighbour. Scaling and recompressing change few of them.
std::uint64_t difference_hash(const data::Image& image, data::Resizer& resizer, data::Image& small);

// Every pair of numbers whose hashes differ in at most `distance` bits (0 to 7), found by bands: of
// distance + 1 bands of the hash at least one is equal, so that only hashes with an equal band are
// compared. First number below the second, sorted.
std::vector<std::pair<std::size_t, std::size_t>> near_pairs(
    const std::vector<std::uint64_t>& hashes, int distance);

// Sets of numbers that pairs join, directly or through others, each sorted, in the order of their
// first number; numbers in no pair are left out.
std::vector<std::vector<std::size_t>> joined_sets(
    std::size_t count, const std::vector<std::pair<std::size_t, std::size_t>>& pairs);

}  // namespace scaletrain::app
