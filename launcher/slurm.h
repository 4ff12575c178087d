// What Slurm tells a process that srun started.
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
  int node = 0;                      // of this process, from 0
  std::vector<std::string> hosts{};  // by node
  int gpus = 0;                      // allotted on this node; 0: none, or not told
};

// nullopt for a process that no srun started; sbatch's own script is one. Throws core::UsageError
// where a variable of Slurm's makes no sense.
std::optional<SlurmStep> slurm_step();

}  // namespace scaletrain::launcher
