#include "lib/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "lib/optim/decay.h"

namespace scaletrain::optim {

struct Schedule::Impl {
  double peak_lr = 0;
  std::int64_t warmup_steps = 0;
  double warmup_from = 0;
  bool warmup_is_exponential = false;
  // Interval in steps at which the decay changes, counted from the first step.
  std::int64_t period = 1;
  std::int64_t last_decay_step = std::numeric_limits<std::int64_t>::max();
  Decay decay;

  double warmup_factor(std::int64_t step) const {
    const double share = static_cast<double>(step + 1) / static_cast<double>(warmup_steps);
    if (warmup_is_exponential) return std::pow(warmup_from, 1 - share);
    return warmup_from + (1 - warmup_from) * share;
  }
};

Schedule::Schedule(const recipe::Schedule& config, double peak_lr, ScheduleSpan span)
    : impl_(std::make_unique<Impl>()) {
  impl_->peak_lr = peak_lr;
  if (config.warmup) impl_->warmup_steps = duration_steps(*config.warmup, span.steps_per_epoch);
  impl_->warmup_from = config.warmup_from;
  impl_->warmup_is_exponential = config.warmup_shape == "exponential";
  if (config.by == "epoch") impl_->period = std::max<std::int64_t>(1, span.steps_per_epoch);
  const std::int64_t cooldown =
      config.cooldown ? duration_steps(*config.cooldown, span.steps_per_epoch) : 0;
  const std::int64_t steps =
      std::max<std::int64_t>(0, span.total_steps - impl_->warmup_steps - cooldown);
  if (cooldown > 0) impl_->last_decay_step = steps;
  impl_->decay = make_decay(config.decay, {.steps = steps,
                                           .steps_per_epoch = span.steps_per_epoch,
                                           .warmup_steps = impl_->warmup_steps});
}

Schedule::~Schedule() = default;

double Schedule::lr(std::int64_t step) const {
  if (step < impl_->warmup_steps) return impl_->peak_lr * impl_->warmup_factor(step);
  const std::int64_t moved = step / impl_->period * impl_->period - impl_->warmup_steps;
  return impl_->peak_lr * impl_->decay(std::clamp<std::int64_t>(moved, 0, impl_->last_decay_step));
}

std::int64_t duration_steps(const recipe::Duration& duration, std::int64_t steps_per_epoch) {
  double steps = 0;
  switch (duration.unit) {
    case recipe::Duration::Unit::kSteps:
      steps = duration.value;
      break;
    case recipe::Duration::Unit::kEpochs:
      steps = duration.value * static_cast<double>(steps_per_epoch);
      break;
    case recipe::Duration::Unit::kMinutes:
      throw std::logic_error("a length in minutes has no number of steps");
  }
  return std::max<std::int64_t>(0, std::llround(steps));
}

}  // namespace scaletrain::optim
