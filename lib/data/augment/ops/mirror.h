// Horizontal flip.
#pragma once

#include "lib/data/augment/ops/scratch.h"
#include "lib/data/image/image.h"

namespace scaletrain::data {

void mirror(Image& image, Scratch& scratch);

}  // namespace scaletrain::data
