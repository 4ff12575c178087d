// Rules for anomalous steps (recipe section `anomaly`): counts of format::TrainState, all pure
// functions of it, so that every rank and every resume decides alike.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lib/format/checkpoint/train_state.h"
#include "lib/recipe/sections/anomaly.h"
#include "lib/train/rules/spike_bounds.h"

namespace scaletrain::train {

// Values of a step that is counted.
struct CountedStep {
  std::int64_t step = 0;  // from 1
  double loss = 0, grad_norm = 0;
  bool anomalous =
      false;  // its update was skipped for another reason than an overflow of the loss scale
};

// Counts a step in the window of measures and, if anomalous, among the anomalous steps.
void count_step(const recipe::Anomaly& anomaly, const CountedStep& one, format::TrainState& state);

// Returns the bounds of the step after `state`.
SpikeBounds next_bounds(const recipe::Anomaly& anomaly, const format::TrainState& state);

// Returns why training ends after anomalous step `step`, such as "11 of the last 100 steps were
// anomalous, more than /anomaly/max"; "" if it continues.
std::string anomaly_end(const recipe::Anomaly& anomaly, const format::TrainState& state,
                        std::int64_t step);

// Returns `lr` times the factor of the reductions that count for the step after `state`; that of
// the step before it counts one step later, as in spike_bounds().
double reduced_lr(const std::optional<recipe::Anomaly>& anomaly, const format::TrainState& state,
                  double lr);

// Returns the state after a rollback from `now` to the checkpoint with state `then`: training goes
// on at the step of `now` with the weights of `then`, and the steps in between are a skipped range.
format::TrainState rolled_back(const format::TrainState& now, const format::TrainState& then);

// Drops the fields of /anomaly if the recipe has no such section.
void keep_anomalies_of(const std::optional<recipe::Anomaly>& anomaly, format::TrainState& state);

}  // namespace scaletrain::train
