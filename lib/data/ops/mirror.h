// Left and right swapped.
#pragma once

#include "lib/data/image.h"
#include "lib/data/ops/scratch.h"

namespace scaletrain::data {

void mirror(Image& image, Scratch& scratch);

}  // namespace scaletrain::data
