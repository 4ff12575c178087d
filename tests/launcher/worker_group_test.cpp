#include "launcher/worker_group.h"

#include <doctest/doctest.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "lib/core/descriptor.h"

namespace scaletrain::launcher {
namespace {

// Leaves it to be waited for.
void await_end(pid_t pid) {
  siginfo_t info{};
  REQUIRE(waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT) == 0);
}

std::vector<WorkerPlan> plan_of_one(std::vector<std::string> arguments) {
  std::vector<WorkerPlan> plans(1);
  plans[0].process.arguments = std::move(arguments);
  return plans;
}

}  // namespace

TEST_CASE("a worker that had ended when other nodes stopped the rest was not ended by them") {
  const auto plans = plan_of_one({"/bin/sh", "-c", "kill -KILL $$"});
  const core::Descriptor told(eventfd(1, EFD_CLOEXEC));  // before anything else is seen
  GroupOptions options;
  options.started = [](const WorkerPlan&, pid_t pid) { await_end(pid); };
  options.nodes_fd = told.get();
  options.nodes_stop = [] { return true; };
  StopSignals signals({});
  const GroupEnd end = run_group(plans, options, signals);
  REQUIRE(end.workers.size() == 1);
  CHECK(end.workers[0].status.signal == SIGKILL);
  CHECK_FALSE(end.workers[0].was_stopped);
}

TEST_CASE("other nodes stop workers that run") {
  const auto plans = plan_of_one({"/bin/sleep", "1000"});
  const core::Descriptor told(eventfd(1, EFD_CLOEXEC));
  GroupOptions options;
  options.grace = std::chrono::seconds(60);
  options.nodes_fd = told.get();
  options.nodes_stop = [] { return true; };
  StopSignals signals({});
  const GroupEnd end = run_group(plans, options, signals);
  REQUIRE(end.workers.size() == 1);
  CHECK(end.nodes_stopped);
  CHECK(end.workers[0].status.signal == SIGTERM);
  CHECK(end.workers[0].was_stopped);
}

}  // namespace scaletrain::launcher
