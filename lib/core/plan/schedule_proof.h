// Runs a pipeline's schedule on paper: that it comes to an end, how long ranks wait, and how much
// they hold.
#pragma once

#include <vector>

#include "lib/core/plan/pipeline_schedule.h"

namespace scaletrain::core {

// Time of one micro-batch on a rank, all of its chunks together, in any unit.
struct WorkCosts {
  double forward = 1, backward_input = 1, backward_weight = 1;
};

struct ScheduleProof {
  double length = 0;      // until the last rank is done
  double idle_share = 0;  // share of the time of all ranks
  // Peak number of micro-batches with activations on each rank, of one chunk each.
  std::vector<int> held;
};

// Runs it with messages that take no time. Throws core::InternalError, naming rank and action,
// where a stage does not take each micro-batch once forward and once backward, in ascending order;
// where a rank would wait for ever; or where a rank takes what comes from a neighbour, activations
// or gradients, in another order than that sends them: NCCL matches messages by their order.
ScheduleProof prove(const Schedule& schedule, const PipelineShape& shape,
                    const WorkCosts& costs = {});

}  // namespace scaletrain::core
