// "Every so often", as a pure function of where training is.
#pragma once

#include <cstdint>

#include "lib/recipe/recipe.h"

namespace scaletrain::train {

class Cadence {
 public:
  Cadence(recipe::Duration every, std::int64_t steps_per_epoch)
      : every_(every), steps_per_epoch_(steps_per_epoch) {}

  // Whether something is due after optimizer step `step` (from 1), which ended when training had
  // taken `seconds`, the step before it at `seconds_before`.
  bool due(std::int64_t step, double seconds_before, double seconds) const;

 private:
  recipe::Duration every_;
  std::int64_t steps_per_epoch_;
};

}  // namespace scaletrain::train
