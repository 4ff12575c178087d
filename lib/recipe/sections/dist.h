// How the ranks of a job exchange tensors.
#pragma once

#include <string>

#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

struct Dist {
  std::string cpu = "auto";  // "auto", "gloo", "shm": what exchanges the tensors of CPUs
};

TypePtr describe(Dist& value);

}  // namespace scaletrain::recipe
