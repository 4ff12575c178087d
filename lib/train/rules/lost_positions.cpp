#include "lib/train/rules/lost_positions.h"

#include <algorithm>

namespace scaletrain::train {

void append_lost_positions(const LostSteps& lost, const Length& length,
                           const recipe::BatchPlan& batch,
                           std::vector<std::vector<std::int64_t>>& positions) {
  const std::int64_t each = length.steps_per_epoch;
  const std::int64_t samples = batch.per_device * lost.readers;  // a replica's micro-batch
  for (std::int64_t step = lost.from; step < lost.to;) {
    const std::int64_t place = length.place(step);
    const std::int64_t first = place % each;
    const std::int64_t end = std::min(each, first + lost.to - step);
    positions.push_back({place / each, first * batch.global, end * batch.global,
                         samples * lost.replicas, samples * lost.replica, samples});
    step += end - first;
  }
}

}  // namespace scaletrain::train
