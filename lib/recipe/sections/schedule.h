// How the learning rate changes.
#pragma once

#include <optional>
#include <string>

#include "lib/recipe/catalog/values.h"
#include "lib/recipe/sections/plateau.h"
#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

struct Schedule {
  std::optional<Duration> warmup;
  double warmup_from = 0;               // first learning rate over lr; 0: one step's share of lr
  std::string warmup_shape = "linear";  // or "exponential"
  Component decay;                      // schedules.def
  std::optional<Duration> cooldown;     // at the end, with the decay's last learning rate
  std::optional<Plateau> plateau;       // further factor of the rate
  std::string by = "step";              // or "epoch": the decay moves only where an epoch begins
};

TypePtr describe(Schedule& value);

// Checks its keys against each other.
void check(const Schedule& schedule, const Node& tree, Problems& problems);

}  // namespace scaletrain::recipe
