// Which positions of the order no replica has trained on, for state.json.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/recipe/sections/batch.h"
#include "lib/train/length.h"

namespace scaletrain::train {

// Of one of so many replicas, each of so many data coordinates, the steps from `from` up to `to`,
// both from 0.
struct LostSteps {
  int replica = 0, replicas = 1;
  int readers = 1;
  std::int64_t from = 0, to = 0;
};

// Adds their positions, in the form of format::TrainState::lost_positions.
void append_lost_positions(const LostSteps& lost, const Length& length,
                           const recipe::BatchPlan& batch,
                           std::vector<std::vector<std::int64_t>>& positions);

}  // namespace scaletrain::train
