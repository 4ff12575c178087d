// Working memory of what changes an image; one a thread.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/data/image/image.h"

namespace scaletrain::data {

struct Scratch {
  Image image;  // to write into and swap
  std::vector<std::uint8_t> bytes;
};

}  // namespace scaletrain::data
