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
  int node = 0;                      // this process's node, from 0
  std::vector<std::string> hosts{};  // indexed by node
  int gpus = 0;                      // allotted on this node; 0: none, or not known
  int task = 0;                      // this process among all, from 0
  int local_task = 0;                // and among those of its node
  int local_tasks = 1;               // on this node
  int cpus = 0;                      // allotted on this node; 0: not known
};

// nullopt for a process that no srun started; sbatch's own script is one. Throws core::UsageError
// where a variable of Slurm's makes no sense.
std::optional<SlurmStep> slurm_step();

// The tasks on node number `node` of SLURM_STEP_TASKS_PER_NODE: "2(x3),1" is 2, 2, 2, 1. Throws
// core::UsageError where the text is no such list, or has no such node.
int tasks_on_node(const std::string& text, int node);

}  // namespace scaletrain::launcher
