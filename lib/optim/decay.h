// Learning rate schedules after the warmup: one function of the step for each name in
// lib/recipe/catalog/schedules.def, each in a file of lib/optim/schedules/.
#pragma once

#include <cstdint>
#include <functional>

#include "lib/recipe/catalog/values.h"

namespace scaletrain::optim {

// Returns the learning rate relative to its peak, `step` steps after the warmup.
using Decay = std::function<double(std::int64_t step)>;

struct DecaySpan {
  std::int64_t steps = 0;  // steps between warmup and cooldown; may be 0
  std::int64_t steps_per_epoch = 0;
  std::int64_t warmup_steps = 0;  // steps of warmup before it
};

// Throws std::logic_error for an unknown name, like the other make_ functions: recipes were
// validated against the same list.
Decay make_decay(const recipe::Component& config, DecaySpan span);

// Returns 0 at the end of the warmup, 1 at the end of the span and afterwards.
double progress(std::int64_t step, DecaySpan span);

}  // namespace scaletrain::optim
