// Gaussian blur, separable, in 16-bit fixed point. The image is mirrored at its edges as in
// torchvision's gaussian_blur; values differ from it by at most 1.
#pragma once

#include <cstdint>

#include "lib/data/augment/ops/scratch.h"
#include "lib/data/image/image.h"

namespace scaletrain::data {

// `kernel_size` is odd; a kernel larger than the image is shortened.
void gaussian_blur(std::int64_t kernel_size, double sigma, Image& image, Scratch& scratch);

}  // namespace scaletrain::data
