// Gaussian blur, separable, in 16-bit fixed point; beyond the edge the image is mirrored, as in
// torchvision's gaussian_blur, from which values differ by 1 at most.
#pragma once

#include <cstdint>

#include "lib/data/augment/ops/scratch.h"
#include "lib/data/image/image.h"

namespace scaletrain::data {

// `kernel_size` is odd; a kernel that reaches over the image is cut to it.
void gaussian_blur(std::int64_t kernel_size, double sigma, Image& image, Scratch& scratch);

}  // namespace scaletrain::data
