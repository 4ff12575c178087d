// `srun scaletrain worker`: every task that Slurm started is one rank.
#pragma once

#include "launcher/place/placement.h"
#include "launcher/place/slurm_step.h"

namespace scaletrain::launcher {

// Resources of its node that a task sees.
struct TaskView {
  int gpus = 0;
  int cpus = 1;
};

// Returns the task's placement. GPUs count unless `on_cpu`: a task sees its own one, or all of
// its node and takes the one of its number there. Throws core::UsageError, with the line for the
// batch script, where GPUs and tasks do not fit.
Placement place_task(const SlurmStep& step, const TaskView& view, bool on_cpu);

}  // namespace scaletrain::launcher
