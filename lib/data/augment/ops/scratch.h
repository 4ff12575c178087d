// Working memory of image transforms; one for each thread.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/data/image/image.h"

namespace scaletrain::data {

struct Scratch {
  Image image;  // destination, to be swapped with the image
  std::vector<std::uint8_t> bytes;
};

}  // namespace scaletrain::data
