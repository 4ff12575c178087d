// Perceptual hash: similar images have hashes with few different bits (lib/data/set/near_sets.h).
#pragma once

#include <cstdint>

#include "lib/data/image/image.h"
#include "lib/data/image/resize.h"

namespace scaletrain::app {

// dHash (Krawetz, "Kind of Like That", 2013): each of 64 bits is 1 if a pixel of the 9 x 8 grey
// image is darker than its right neighbour. Scaling and recompression change few bits.
std::uint64_t difference_hash(const data::Image& image, data::Resizer& resizer, data::Image& small);

}  // namespace scaletrain::app
