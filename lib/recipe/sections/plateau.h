// A learning rate that falls where the validations get no better.
#pragma once

#include <cstdint>
#include <string>

#include "lib/recipe/catalog/task.h"
#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

// Plateau schedule of the learning rate: lib/train/rules/plateau.h.
struct Plateau {
  std::string metric;          // a measure of the task; "": that of /checkpoint/best
  double factor = 0.1;         // factor of a drop
  std::int64_t patience = 10;  // validations that may be no better, one after the other
  double threshold = 1e-4;     // a validation is better by this share of the best
  std::int64_t cooldown = 0;   // validations after a drop that are not counted
  double min_lr = 0;           // the learning rate falls no lower
};

TypePtr describe(Plateau& value);

// `task` measures what it goes by.
void check(const Plateau& plateau, const TaskRow& task, const Node& tree, Problems& problems);

}  // namespace scaletrain::recipe
