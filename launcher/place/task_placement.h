// `srun scaletrain worker`: each Slurm task is one rank.
#pragma once

#include "launcher/place/placement.h"
#include "launcher/place/slurm_step.h"

namespace scaletrain::launcher {

// Resources of the node that a task sees.
struct TaskView {
  int gpus = 0;
  int cpus = 1;
};

// Returns the task's placement. GPUs count unless `on_cpu`: a task sees one GPU, or all of its node
// and takes the one with its local number. Throws core::UsageError, with the line for the batch
// script, if GPUs and tasks do not match.
Placement place_task(const SlurmStep& step, const TaskView& view, bool on_cpu);

}  // namespace scaletrain::launcher
