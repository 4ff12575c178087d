// Simulates a pipeline schedule: shows that it ends, how long ranks are idle, and how much memory
// activations take.
#pragma once

#include <vector>

#include "lib/core/plan/pipeline_schedule.h"

namespace scaletrain::core {

// Time of one micro-batch on a rank, summed over its chunks, in any unit.
struct WorkCosts {
  double forward = 1, backward_input = 1, backward_weight = 1;
};

struct ScheduleProof {
  double length = 0;      // until the last rank is done
  double idle_share = 0;  // share of the time of all ranks
  // Peak number of micro-batches with activations on each rank, of one chunk each.
  std::vector<int> held;
};

// Simulates the schedule with messages that take no time. Throws core::InternalError, naming rank
// and action, if a stage does not process each micro-batch once forward and once backward in
// ascending order, if a rank would deadlock, or if a rank receives activations or gradients in
// another order than its neighbour sends them (NCCL matches messages by order).
ScheduleProof prove(const Schedule& schedule, const PipelineShape& shape,
                    const WorkCosts& costs = {});

}  // namespace scaletrain::core
