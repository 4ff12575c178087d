#include "launcher/place/task_placement.h"

#include <fmt/format.h>

#include "lib/core/error.h"

namespace scaletrain::launcher {
namespace {

void check_gpus(const SlurmStep& step, const TaskView& view) {
  const auto refuse = [](const std::string& found, const std::string& remedy) {
    throw core::UsageError("SLURM_GPUS_ON_NODE", found, remedy);
  };
  if (step.gpus != step.local_tasks) {
    refuse(fmt::format("{} GPUs and {} tasks on this node, and every task is one rank", step.gpus,
                       step.local_tasks),
           fmt::format("start a task for each GPU: #SBATCH --ntasks-per-node={}", step.gpus));
  }
  if (view.gpus == 0) {
    refuse(fmt::format("{} GPUs were allotted on this node, and none is visible", step.gpus),
           "check nvidia-smi and CUDA_VISIBLE_DEVICES there, or train on CPUs: --set device=cpu");
  }
  if (view.gpus != 1 && view.gpus != step.local_tasks) {
    refuse(fmt::format("{} tasks on this node, and each sees {} GPUs", step.local_tasks, view.gpus),
           fmt::format("let every task see all GPUs of its node: #SBATCH --gpus-per-node={}",
                       step.local_tasks));
  }
}

}  // namespace

Placement place_task(const SlurmStep& step, const TaskView& view, bool on_cpu) {
  const bool on_gpu = !on_cpu && step.gpus > 0;
  if (on_gpu) check_gpus(step, view);
  const bool has_own_cpus = view.cpus < step.cpus;
  Placement result;
  result.nnodes = result.min_nodes = step.tasks;
  result.node_rank = step.task;
  // On one node no name has to resolve.
  if (step.nodes > 1) result.master_addr = step.hosts.front();
  if (step.tasks > 1) {
    result.master_port = port_of_job(step.job);
    result.endpoints = {{.host = result.master_addr, .port = result.master_port}};
  }
  result.task = TaskPlace{.local_rank = on_gpu && view.gpus == 1 ? 0 : step.local_task,
                          .local_world_size = has_own_cpus ? 1 : step.local_tasks,
                          .node = step.node,
                          .nodes = step.nodes};
  return result;
}

}  // namespace scaletrain::launcher
