// What is made small.
#pragma once

#include "lib/recipe/sections/section.h"
#include "lib/recipe/values.h"

namespace scaletrain::recipe {

struct Loss : Component {
  double label_smoothing = 0;
};

TypePtr describe(Loss& value);

}  // namespace scaletrain::recipe
