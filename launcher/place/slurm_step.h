// Job step of a process that srun started, from Slurm's environment variables.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace scaletrain::launcher {

struct SlurmStep {
  std::int64_t job = 0;
  int nodes = 1;
  int tasks = 1;
  int node = 0;                      // node of this process, from 0
  std::vector<std::string> hosts{};  // indexed by node
  int gpus = 0;                      // GPUs allotted on this node; 0: none or unknown
  int task = 0;                      // number of this process among all, from 0
  int local_task = 0;                // number among those of its node
  int local_tasks = 1;               // on this node
  int cpus = 0;                      // CPUs allotted on this node; 0: unknown
};

// Returns nullopt for a process that srun did not start, such as sbatch's script. Throws
// core::UsageError for invalid Slurm variables.
std::optional<SlurmStep> slurm_step();

// Returns the tasks on node `node` of SLURM_STEP_TASKS_PER_NODE: "2(x3),1" is 2, 2, 2, 1. Throws
// core::UsageError for an invalid list or a missing node.
int tasks_on_node(const std::string& text, int node);

}  // namespace scaletrain::launcher
