#include "launcher/place/slurm_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "launcher/flags/values.h"
#include "launcher/place/hostlist.h"
#include "lib/core/error.h"
#include "lib/core/printable.h"

namespace scaletrain::launcher {
namespace {

constexpr int kMany = 1 << 30;
constexpr const char* kStepRemedy = "unset Slurm's variables, or start this with srun";

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
  const auto count = [](const char* name, int low, int high = kMany) {
    return parse_count(name, variable(name), low, high);
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
                           kStepRemedy);
  }
  step.task = count("SLURM_PROCID", 0, step.tasks - 1);
  step.local_tasks = tasks_on_node(variable("SLURM_STEP_TASKS_PER_NODE"), step.node);
  step.local_task = count("SLURM_LOCALID", 0, step.local_tasks - 1);
  if (!variable("SLURM_CPUS_ON_NODE").empty()) step.cpus = count("SLURM_CPUS_ON_NODE", 0);
  return step;
}

int tasks_on_node(const std::string& text, int node) {
  int first = 0;  // node of the entry that begins at `begin`
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string entry = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t repeated = entry.find("(x");
    int nodes = 1;
    if (repeated != std::string::npos && entry.ends_with(')')) {
      nodes =
          parse_count("SLURM_STEP_TASKS_PER_NODE",
                      entry.substr(repeated + 2, entry.size() - repeated - 3), 1, kMany - first);
    }
    const int tasks = parse_count("SLURM_STEP_TASKS_PER_NODE", entry.substr(0, repeated), 1, kMany);
    if (node < first + nodes) return tasks;
    first += nodes;
  }
  throw core::UsageError(
      "SLURM_STEP_TASKS_PER_NODE",
      fmt::format("\"{}\" has {} nodes, and this is number {}", core::printable(text), first, node),
      kStepRemedy);
}

}  // namespace scaletrain::launcher
