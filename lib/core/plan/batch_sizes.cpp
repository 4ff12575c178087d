#include "lib/core/plan/batch_sizes.h"

#include <algorithm>

namespace scaletrain::core {
namespace {

constexpr std::int64_t kMostIncrements = 10000;

std::int64_t divided_up(std::int64_t number, std::int64_t by) { return (number + by - 1) / by; }

}  // namespace

const char* BatchSizes::why_not(std::int64_t global, const BatchRamp& ramp) {
  if (ramp.start < 1 || ramp.increment < 1 || ramp.samples < 1) return "has a number below 1";
  if (ramp.start >= global) return "does not grow";
  if ((global - ramp.start) % ramp.increment != 0) return "does not meet the whole batch";
  return (global - ramp.start) / ramp.increment > kMostIncrements ? "has too many sizes" : "";
}

BatchSizes::BatchSizes(std::int64_t global, const std::optional<BatchRamp>& ramp) {
  if (!ramp) {
    stages_.push_back({.first_step = 0, .first_sample = 0, .batch = global});
    return;
  }
  const std::int64_t increments = (global - ramp->start) / ramp->increment;
  // It has grown so many times from the first sample on that is at least this share of all.
  const auto grown_at = [&](std::int64_t times) {
    return times * (ramp->samples / increments) +
           divided_up(times * (ramp->samples % increments), increments);
  };
  stages_.reserve(static_cast<std::size_t>(increments) + 1);
  std::int64_t step = 0, sample = 0, times = 0;
  for (;;) {
    const std::int64_t batch = ramp->start + times * ramp->increment;
    stages_.push_back({.first_step = step, .first_sample = sample, .batch = batch});
    if (times == increments) return;
    const std::int64_t steps = divided_up(grown_at(times + 1) - sample, batch);
    step += steps;
    sample += steps * batch;
    while (times < increments && grown_at(times + 1) <= sample) ++times;
  }
}

const BatchSizes::Stage& BatchSizes::stage_of_step(std::int64_t step) const {
  const auto behind = std::upper_bound(
      stages_.begin() + 1, stages_.end(), step,
      [](std::int64_t asked, const Stage& stage) { return asked < stage.first_step; });
  return *(behind - 1);
}

std::int64_t BatchSizes::samples_before(std::int64_t step) const {
  const Stage& stage = stage_of_step(step);
  return stage.first_sample + (step - stage.first_step) * stage.batch;
}

std::int64_t BatchSizes::step_of_sample(std::int64_t sample) const {
  const auto behind = std::upper_bound(
      stages_.begin() + 1, stages_.end(), sample,
      [](std::int64_t asked, const Stage& stage) { return asked < stage.first_sample; });
  const Stage& stage = *(behind - 1);
  return stage.first_step + (sample - stage.first_sample) / stage.batch;
}

}  // namespace scaletrain::core
