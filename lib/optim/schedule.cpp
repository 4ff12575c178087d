#include "lib/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "lib/optim/decay.h"

namespace scaletrain::optim {

struct Schedule::Impl {
  double peak_lr = 0;
  std::int64_t warmup_steps = 0;
  Decay decay;
};

Schedule::Schedule(const recipe::Schedule& config, double peak_lr, ScheduleSpan span)
    : impl_(std::make_unique<Impl>()) {
  impl_->peak_lr = peak_lr;
  if (config.warmup) impl_->warmup_steps = duration_steps(*config.warmup, span.steps_per_epoch);
  impl_->decay = make_decay(config.decay, {.steps = span.total_steps - impl_->warmup_steps,
                                           .steps_per_epoch = span.steps_per_epoch});
}

Schedule::~Schedule() = default;

double Schedule::lr(std::int64_t step) const {
  const std::int64_t warmup = impl_->warmup_steps;
  if (step < warmup) {
    return impl_->peak_lr * static_cast<double>(step + 1) / static_cast<double>(warmup);
  }
  return impl_->peak_lr * impl_->decay(step - warmup);
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
