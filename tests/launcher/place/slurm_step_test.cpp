#include "launcher/place/slurm_step.h"

#include <doctest/doctest.h>

#include <string>

#include "lib/core/error.h"
#include "tests/launcher/environment_support.h"

namespace scaletrain::launcher {
namespace {

std::string step_error(const std::string& text, int node) {
  try {
    tasks_on_node(text, node);
  } catch (const core::UsageError& error) {
    return error.what();
  }
  return "no error";
}

// Slurm's variables for the third task of five on two nodes, as srun sets them.
Values third_of_five() {
  return {{"SLURM_JOB_ID", "77"},
          {"SLURM_PROCID", "3"},
          {"SLURM_LOCALID", "0"},
          {"SLURM_NODEID", "1"},
          {"SLURM_STEP_NUM_NODES", "2"},
          {"SLURM_STEP_NUM_TASKS", "5"},
          {"SLURM_STEP_NODELIST", "n[1-2]"},
          {"SLURM_STEP_TASKS_PER_NODE", "3,2"},
          {"SLURM_GPUS_ON_NODE", "2"},
          {"SLURM_CPUS_ON_NODE", "8"}};
}

TEST_CASE("what srun tells a task is read") {
  const Variables variables(third_of_five());
  const std::optional<SlurmStep> step = slurm_step();
  REQUIRE(step);
  CHECK(step->job == 77);
  CHECK(step->tasks == 5);
  CHECK(step->task == 3);
  CHECK(step->node == 1);
  CHECK(step->hosts == std::vector<std::string>{"n1", "n2"});
  CHECK(step->local_task == 0);
  CHECK(step->local_tasks == 2);
  CHECK(step->gpus == 2);
  CHECK(step->cpus == 8);
}

TEST_CASE("a process that srun did not start is in no step") {
  CHECK_FALSE(slurm_step());
  auto batch_script = third_of_five();
  batch_script.erase("SLURM_STEP_NUM_TASKS");
  const Variables variables(batch_script);
  CHECK_FALSE(slurm_step());
}

TEST_CASE("tasks of a node are found in Slurm's short form") {
  CHECK(tasks_on_node("4", 0) == 4);
  CHECK(tasks_on_node("2(x3),1", 2) == 2);
  CHECK(tasks_on_node("2(x3),1", 3) == 1);
  CHECK(tasks_on_node("1,8(x2)", 2) == 8);
}

TEST_CASE("what is no list of tasks is refused") {
  CHECK(step_error("2(x3),1", 4) ==
        "SLURM_STEP_TASKS_PER_NODE: \"2(x3),1\" has 4 nodes, and this is number 4\n"
        "  unset Slurm's variables, or start this with srun");
  for (const char* text : {"", "x", "2(x", "2(x)", "(x2)", "0", "-1", "2(x0)", "2(y3)", "1,,2"}) {
    CAPTURE(text);
    CHECK(step_error(text, 1).find("SLURM_STEP_TASKS_PER_NODE: ") == 0);
  }
}

}  // namespace
}  // namespace scaletrain::launcher
