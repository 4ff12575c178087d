#include "launcher/slurm.h"

#include <fmt/format.h>

#include <cstdlib>

#include "launcher/hostlist.h"
#include "launcher/launch_options.h"
#include "lib/core/error.h"

namespace scaletrain::launcher {
namespace {

constexpr int kMany = 1 << 30;

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace

std::optional<SlurmStep> slurm_step() {
  // In sbatch's script SLURM_PROCID is there, and no number of tasks of a step.
  if (variable("SLURM_PROCID").empty() || variable("SLURM_STEP_NUM_TASKS").empty()) {
    return std::nullopt;
  }
  const auto count = [](const char* name, int low) {
    return parse_count(name, variable(name), low, kMany);
  };
  SlurmStep step;
  step.job = count("SLURM_JOB_ID", 0);
  step.nodes = count("SLURM_STEP_NUM_NODES", 1);
  step.tasks = count("SLURM_STEP_NUM_TASKS", 1);
  step.node = count("SLURM_NODEID", 0);
  step.hosts = expand_hostlist("SLURM_STEP_NODELIST", variable("SLURM_STEP_NODELIST"));
  if (!variable("SLURM_GPUS_ON_NODE").empty()) step.gpus = count("SLURM_GPUS_ON_NODE", 0);
  if (static_cast<int>(step.hosts.size()) != step.nodes || step.node >= step.nodes) {
    throw core::UsageError("SLURM_STEP_NODELIST",
                           fmt::format("has {} hosts; the step has {} nodes, and this is number {}",
                                       step.hosts.size(), step.nodes, step.node),
                           "unset Slurm's variables, or start this with srun");
  }
  return step;
}

}  // namespace scaletrain::launcher
