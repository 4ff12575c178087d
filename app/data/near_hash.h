// Images that look alike: a perceptual hash, and the sets of a list whose hashes are near.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/data/image.h"
#include "lib/data/resize.h"

namespace scaletrain::app {

// dHash (Krawetz, "Kind of Like That", 2013): 64 bits, each whether a pixel of the grey picture of
// 9 x 8 is darker than its right neighbour. Scaling and recompressing change few of them.
std::uint64_t difference_hash(const data::Image& image, data::Resizer& resizer, data::Image& small);

// Sets of numbers whose hashes differ in at most `distance` bits (0 to 7), directly or through
// others; each ascending, in the order of their first. Found by bands: of distance + 1 bands of the
// hash at least one is equal, so that only hashes with an equal band are compared. Takes 8 bytes a
// hash beside them.
std::vector<std::vector<std::uint32_t>> near_sets(const std::vector<std::uint64_t>& hashes,
                                                  int distance);

}  // namespace scaletrain::app
