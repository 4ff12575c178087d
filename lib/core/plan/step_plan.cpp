#include "lib/core/plan/step_plan.h"

#include <algorithm>
#include <utility>

namespace scaletrain::core {

StepPlan::StepPlan(BatchSizes sizes, std::int64_t samples, std::int64_t step, StepPlace from)
    : sizes_(std::move(sizes)), samples_(samples) {
  rows_.reserve(sizes_.stages().size());
  rows_.push_back({.step = step, .place = from, .batch = sizes_.of_step(step)});
  for (const BatchSizes::Stage& stage : sizes_.stages()) {
    if (stage.first_step <= step) continue;
    const StepPlace place = place_in(rows_.back(), stage.first_step);
    rows_.push_back({.step = stage.first_step, .place = place, .batch = stage.batch});
  }
}

std::int64_t StepPlan::steps_left(const Row& row) const {
  return std::max<std::int64_t>(0, samples_ - row.place.position) / row.batch;
}

StepPlace StepPlan::place_in(const Row& row, std::int64_t step) const {
  const std::int64_t since = step - row.step, left = steps_left(row);
  if (since < left) {
    return {.epoch = row.place.epoch,
            .step_in_epoch = row.place.step_in_epoch + since,
            .position = row.place.position + since * row.batch};
  }
  const std::int64_t later = since - left, steps = samples_ / row.batch;
  return {.epoch = row.place.epoch + 1 + later / steps,
          .step_in_epoch = later % steps,
          .position = later % steps * row.batch};
}

StepPlace StepPlan::at(std::int64_t step) const {
  const auto behind =
      std::upper_bound(rows_.begin() + 1, rows_.end(), step,
                       [](std::int64_t asked, const Row& row) { return asked < row.step; });
  return place_in(*(behind - 1), step);
}

std::int64_t StepPlan::step_of(std::int64_t epoch, std::int64_t position) const {
  const auto behind =
      std::upper_bound(rows_.begin() + 1, rows_.end(), std::pair(epoch, position),
                       [](const std::pair<std::int64_t, std::int64_t>& asked, const Row& row) {
                         return asked < std::pair(row.place.epoch, row.place.position);
                       });
  const Row& row = *(behind - 1);
  if (epoch <= row.place.epoch) {
    return row.step + std::max<std::int64_t>(0, position - row.place.position) / row.batch;
  }
  const std::int64_t steps = samples_ / row.batch;
  return row.step + steps_left(row) + (epoch - row.place.epoch - 1) * steps + position / row.batch;
}

std::int64_t StepPlan::first_step(std::int64_t epoch) const {
  const Row& first = rows_.front();
  if (epoch > first.place.epoch) return step_of(epoch, 0);
  // The steps of epochs before the plan are unknown; there were at least as many.
  const std::int64_t began = first.step - first.place.step_in_epoch;
  return began - (first.place.epoch - epoch) * steps_per_epoch();
}

std::int64_t StepPlan::steps_of(std::int64_t epoch) const {
  return std::max<std::int64_t>(1, first_step(epoch + 1) - first_step(epoch));
}

std::int64_t StepPlan::spread(std::int64_t step) const {
  const StepPlace place = at(step);
  const std::int64_t steps = steps_per_epoch();
  return place.epoch * steps + place.step_in_epoch * steps / steps_of(place.epoch);
}

std::int64_t StepPlan::step_at(std::int64_t spread) const {
  const std::int64_t steps = steps_per_epoch();
  const std::int64_t epoch = spread / steps, of_epoch = spread % steps;
  return first_step(epoch) + (of_epoch * steps_of(epoch) + steps - 1) / steps;
}

}  // namespace scaletrain::core
