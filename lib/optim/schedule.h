// The learning rate as a pure function of the step.
#pragma once

#include <cstdint>
#include <memory>

#include "lib/recipe/catalog/values.h"
#include "lib/recipe/sections/schedule.h"

namespace scaletrain::optim {

struct ScheduleSpan {
  std::int64_t total_steps = 0;
  std::int64_t steps_per_epoch = 0;
};

class Schedule {
 public:
  // Durations of `config` are turned into steps with `span`.
  Schedule(const recipe::Schedule& config, double peak_lr, ScheduleSpan span);
  ~Schedule();

  // Learning rate of optimizer step `step`, from 0: during the warmup peak * f, where f rises from
  // warmup_from to 1 at its last step, (step + 1) / warmup_steps where that is 0; then the decay
  // over the steps up to the cooldown, and what it ended with.
  double lr(std::int64_t step) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Steps of a duration, rounded to the nearest, at least 0; minutes are not allowed here.
std::int64_t duration_steps(const recipe::Duration& duration, std::int64_t steps_per_epoch);

}  // namespace scaletrain::optim
