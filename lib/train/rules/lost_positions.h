// Sample positions that no replica has trained on, for state.json.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/recipe/sections/batch.h"
#include "lib/train/rules/length.h"

namespace scaletrain::train {

// Lost steps of replica `replica` of `replicas`, each of `readers` data-parallel ranks: from `from`
// up to `to`, both from 0.
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
