#include "launcher/place/pod.h"

#include <doctest/doctest.h>

#include <string>

#include "launcher/place/placement.h"
#include "lib/core/error.h"
#include "tests/launcher/environment_support.h"

namespace scaletrain::launcher {
namespace {

LaunchOptions taken(LaunchOptions options) {
  take_from_kubernetes(options);
  return options;
}

TEST_CASE("the pods of an Indexed Job are numbered by it") {
  const Variables pod(
      Values{{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}, {"JOB_COMPLETION_INDEX", "2"}});
  const Placement placement = resolve_placement({.nnodes = "4", .master_addr = "run-0.run"});
  CHECK(placement.node_rank == 2);
  CHECK(placement.nnodes == 4);
  CHECK(placement.master_addr == "run-0.run");
  CHECK(taken({.nnodes = "4", .node_rank = "1"}).node_rank == "1");
}

TEST_CASE("a pod of an Indexed Job that has one node is a job of its own") {
  const Variables pod(
      Values{{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}, {"JOB_COMPLETION_INDEX", "2"}});
  CHECK(taken({}).node_rank.empty());
  CHECK(taken({.nnodes = "1"}).node_rank.empty());
}

TEST_CASE("an operator that sets no PET_* variables is understood") {
  Values operator_says{{"KUBERNETES_SERVICE_HOST", "10.0.0.1"},
                       {"WORLD_SIZE", "3"},
                       {"RANK", "1"},
                       {"MASTER_ADDR", "run-master-0"},
                       {"MASTER_PORT", "23456"}};
  {
    const Variables pod(operator_says);
    const LaunchOptions options = taken({});
    CHECK(options.nnodes == "3");
    CHECK(options.node_rank == "1");
    CHECK(options.master_addr == "run-master-0");
    CHECK(options.master_port == "23456");
    CHECK(taken({.nnodes = "2"}).master_addr.empty());
    CHECK(taken({.standalone = true}).nnodes.empty());
  }
  operator_says["LOCAL_RANK"] = "0";  // a launcher inside of a worker
  const Variables worker(operator_says);
  CHECK(taken({}).nnodes.empty());
}

TEST_CASE("outside of a pod nothing is taken, and nonsense is refused") {
  const Variables index(Values{{"JOB_COMPLETION_INDEX", "x"}});
  CHECK(taken({.nnodes = "2"}).node_rank.empty());
  const Variables pod(Values{{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}});
  CHECK_THROWS_WITH_AS(taken({.nnodes = "2"}),
                       "JOB_COMPLETION_INDEX: \"x\" is not allowed\n"
                       "  give a whole number from 0 to 1048576",
                       core::UsageError);
}

TEST_CASE("an operator may get another exit code that asks for a restart") {
  CHECK(status_for_operator(75) == 75);
  const Variables asked(Values{{"SCALETRAIN_RETRY_STATUS", "175"}});
  CHECK(status_for_operator(74) == 175);
  CHECK(status_for_operator(75) == 175);
  for (const int status : {0, 1, 2, 65, 71, 76, 130, 137}) {
    CHECK(status_for_operator(status) == status);
  }
  for (const char* wrong : {"", "x", "0", "256", "-1"}) {
    const Variables other(Values{{"SCALETRAIN_RETRY_STATUS", wrong}});
    CHECK(status_for_operator(75) == 75);
  }
}

}  // namespace
}  // namespace scaletrain::launcher
