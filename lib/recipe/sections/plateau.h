// Reduces the learning rate when validations stop improving (ReduceLROnPlateau).
#pragma once

#include <cstdint>
#include <string>

#include "lib/recipe/catalog/task.h"
#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

// Plateau schedule of the learning rate: lib/train/rules/plateau.h.
struct Plateau {
  std::string metric;          // a measure of the task; "": the one of /checkpoint/best
  double factor = 0.1;         // factor of a reduction
  std::int64_t patience = 10;  // consecutive validations without improvement
  double threshold = 1e-4;     // smallest relative improvement
  std::int64_t cooldown = 0;   // validations ignored after a reduction
  double min_lr = 0;           // lower limit of the learning rate
};

TypePtr describe(Plateau& value);

// Checks that `task` has the measure.
void check(const Plateau& plateau, const TaskRow& task, const Node& tree, Problems& problems);

}  // namespace scaletrain::recipe
