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
  // `span` converts the durations of `config` to steps.
  Schedule(const recipe::Schedule& config, double peak_lr, ScheduleSpan span);
  ~Schedule();

  // Returns the learning rate of optimizer step `step`, from 0. During the warmup it is peak * f,
  // where f rises from warmup_from to 1 at the last warmup step ((step + 1) / warmup_steps if
  // warmup_from is 0); then the decay runs until the cooldown, which keeps the last value.
  double lr(std::int64_t step) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Returns the steps of a duration, rounded to the nearest, at least 0; minutes are not allowed
// here.
std::int64_t duration_steps(const recipe::Duration& duration, std::int64_t steps_per_epoch);

}  // namespace scaletrain::optim
