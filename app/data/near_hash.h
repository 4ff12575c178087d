// A perceptual hash: images that look alike have hashes that are near (lib/data/set/near_sets.h).
#pragma once

#include <cstdint>

#include "lib/data/image/image.h"
#include "lib/data/image/resize.h"

namespace scaletrain::app {

// dHash (Krawetz, "Kind of Like That", 2013): 64 bits, each whether a pixel of the grey picture of
// 9 x 8 is darker than its right neighbour. Scaling and recompressing change few of them.
std::uint64_t difference_hash(const data::Image& image, data::Resizer& resizer, data::Image& small);

}  // namespace scaletrain::app
