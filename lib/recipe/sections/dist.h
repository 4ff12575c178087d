// Communication between ranks.
#pragma once

#include <string>

#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

struct Dist {
  std::string cpu = "auto";  // backend for CPU tensors: "auto", "gloo", "shm"
};

TypePtr describe(Dist& value);

}  // namespace scaletrain::recipe
