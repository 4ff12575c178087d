// How the learning rate changes.
#pragma once

#include <optional>

#include "lib/recipe/sections/section.h"
#include "lib/recipe/values.h"

namespace scaletrain::recipe {

struct Schedule {
  std::optional<Duration> warmup;  // linear from lr / warmup_steps
  Component decay;                 // schedules.def: constant, cosine, step, polynomial
};

TypePtr describe(Schedule& value);

}  // namespace scaletrain::recipe
