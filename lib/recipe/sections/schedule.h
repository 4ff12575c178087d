// Learning rate schedule.
#pragma once

#include <optional>
#include <string>

#include "lib/recipe/catalog/values.h"
#include "lib/recipe/sections/plateau.h"
#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

struct Schedule {
  std::optional<Duration> warmup;
  double warmup_from = 0;  // first learning rate relative to lr; 0: one step's share of lr
  std::string warmup_shape = "linear";  // or "exponential"
  Component decay;                      // schedules.def
  std::optional<Duration> cooldown;     // final phase at the decay's last learning rate
  std::optional<Plateau> plateau;       // additional plateau schedule
  std::string by = "step";  // or "epoch": the decay changes only at the start of an epoch
};

TypePtr describe(Schedule& value);

// Checks its keys against each other.
void check(const Schedule& schedule, const Node& tree, Problems& problems);

}  // namespace scaletrain::recipe
