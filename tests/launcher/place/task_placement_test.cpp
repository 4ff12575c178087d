#include "launcher/place/task_placement.h"

#include <doctest/doctest.h>

#include <string>

#include "lib/core/error.h"

namespace scaletrain::launcher {
namespace {

// Task 5 of 8, the second of the four on the second of two nodes.
SlurmStep fifth_of_eight() {
  return {.job = 123456,
          .nodes = 2,
          .tasks = 8,
          .node = 1,
          .hosts = {"n1", "n2"},
          .gpus = 4,
          .task = 5,
          .local_task = 1,
          .local_tasks = 4,
          .cpus = 16};
}

std::string refusal(const SlurmStep& step, const TaskView& view) {
  try {
    place_task(step, view, false);
  } catch (const core::UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST_CASE("a task is a rank; the rendezvous is at the step's first host") {
  const Placement placement = place_task(fifth_of_eight(), {.gpus = 4, .cpus = 16}, false);
  CHECK(placement.nproc == 1);
  CHECK(placement.world_size() == 8);
  CHECK(placement.first_rank() == 5);
  CHECK_FALSE(placement.elastic());
  CHECK(placement.endpoints.front().host == "n1");
  CHECK_FALSE(placement.hosts_store());
  const core::WorkerEnv env = worker_env(placement, 0);
  CHECK(env.rank == 5);
  CHECK(env.world_size == 8);
  CHECK(env.local_rank == 1);
  CHECK(env.local_world_size == 4);
  CHECK(env.group_rank == 1);
  CHECK(env.group_world_size == 2);
  CHECK(env.master_addr == "n1");
  CHECK(env.master_port == 23456);  // 20000 + 123456 mod 10000
}

TEST_CASE(
    "rank 0 hosts the store, whatever its node's number; one node uses the loopback address") {
  SlurmStep step = fifth_of_eight();
  step.task = step.local_task = 0;
  CHECK(place_task(step, {.gpus = 4}, false).hosts_store());
  step.nodes = 1;
  step.node = 0;
  step.tasks = 4;
  CHECK(place_task(step, {.gpus = 4}, false).master_addr == "127.0.0.1");
}

TEST_CASE("a task that sees one GPU takes that, whatever its number") {
  CHECK(place_task(fifth_of_eight(), {.gpus = 1}, false).task->local_rank == 0);
  CHECK(place_task(fifth_of_eight(), {.gpus = 1}, true).task->local_rank == 1);
}

TEST_CASE("CPUs that a task has to itself are not shared out again") {
  CHECK(place_task(fifth_of_eight(), {.gpus = 4, .cpus = 4}, false).task->local_world_size == 1);
  CHECK(place_task(fifth_of_eight(), {.gpus = 4, .cpus = 64}, false).task->local_world_size == 4);
}

TEST_CASE("GPUs and tasks that do not fit are refused with the line to change") {
  SlurmStep step = fifth_of_eight();
  step.gpus = 8;
  CHECK(refusal(step, {.gpus = 8}) ==
        "SLURM_GPUS_ON_NODE: 8 GPUs and 4 tasks on this node, and every task is one rank\n"
        "  start a task for each GPU: #SBATCH --ntasks-per-node=8");
  CHECK(refusal(fifth_of_eight(), {.gpus = 0}) ==
        "SLURM_GPUS_ON_NODE: 4 GPUs were allotted on this node, and none is visible\n"
        "  check nvidia-smi and CUDA_VISIBLE_DEVICES there, or train on CPUs: --set device=cpu");
  CHECK(refusal(fifth_of_eight(), {.gpus = 2}) ==
        "SLURM_GPUS_ON_NODE: 4 tasks on this node, and each sees 2 GPUs\n"
        "  let every task see all GPUs of its node: #SBATCH --gpus-per-node=4");
  CHECK(refusal(fifth_of_eight(), {.gpus = 8}).find("each sees 8 GPUs") != std::string::npos);
}

TEST_CASE("on CPUs, and where no GPU was asked for, GPUs do not count") {
  CHECK(place_task(fifth_of_eight(), {.gpus = 0}, true).world_size() == 8);
  SlurmStep step = fifth_of_eight();
  step.gpus = 0;
  CHECK(refusal(step, {.gpus = 0}) == "no error");
}

}  // namespace
}  // namespace scaletrain::launcher
