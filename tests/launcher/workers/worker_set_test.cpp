#include "launcher/workers/worker_set.h"

#include <doctest/doctest.h>
#include <poll.h>

#include <csignal>
#include <string>

#include "lib/core/error.h"

namespace scaletrain::launcher {
namespace {

using std::chrono::seconds;

WorkerPlan script_plan(int rank, const std::string& script) {
  WorkerPlan plan;
  plan.rank = plan.local_rank = rank;
  plan.process.arguments = {"/bin/sh", "-c", script};
  return plan;
}

std::vector<WorkerEnd> await_ends(WorkerSet& workers, std::size_t count) {
  std::vector<WorkerEnd> ends;
  while (ends.size() < count) {
    pollfd watched{.fd = workers.ends_fd(), .events = POLLIN, .revents = 0};
    REQUIRE(poll(&watched, 1, /*timeout=*/60'000) == 1);
    for (WorkerEnd& end : workers.take_ends()) ends.push_back(std::move(end));
  }
  return ends;
}

TEST_CASE("ends are taken once, and those that run are the others") {
  const std::vector<WorkerPlan> plans{script_plan(5, "sleep 1000"), script_plan(4, "exit 3")};
  WorkerSet workers(nullptr);
  for (const WorkerPlan& plan : plans) workers.start(plan, plan.process);
  const std::vector<WorkerEnd> ends = await_ends(workers, 1);
  REQUIRE(ends.size() == 1);
  CHECK(ends[0].rank == 4);
  CHECK(ends[0].status.code == 3);
  CHECK_FALSE(ends[0].was_stopped);
  CHECK(workers.take_ends().empty());
  CHECK(workers.running() == 1);
  REQUIRE(workers.views().size() == 1);
  CHECK(workers.views()[0].rank == 5);
}

TEST_CASE("a signal reaches those that run, and their ends say which it was") {
  for (const int signal : {SIGTERM, SIGKILL}) {
    CAPTURE(signal);
    const WorkerPlan plan = script_plan(0, "exec sleep 1000");
    WorkerSet workers(nullptr);
    workers.start(plan, plan.process);
    workers.signal(signal);
    const std::vector<WorkerEnd> ends = await_ends(workers, 1);
    CHECK(ends[0].status.signal == signal);
    CHECK(ends[0].was_stopped);
    CHECK(ends[0].was_killed == (signal == SIGKILL));
    workers.signal(SIGTERM);  // nobody runs: nothing happens
    CHECK(workers.running() == 0);
  }
}

TEST_CASE("what workers leave in their groups is ended") {
  const WorkerPlan plan = script_plan(0, "sleep 1000 & exit 0");
  WorkerSet workers(nullptr);
  const pid_t group = workers.start(plan, plan.process);
  await_ends(workers, 1);
  CHECK(kill(-group, 0) == 0);
  workers.end_groups(core::now() + seconds(60));
  CHECK(kill(-group, 0) != 0);
  workers.reap_orphans({});
}

TEST_CASE("a program that is not there is an error that names it") {
  WorkerPlan plan;
  plan.process.arguments = {"/no/such/worker"};
  WorkerSet workers(nullptr);
  CHECK_THROWS_AS(workers.start(plan, plan.process), core::UsageError);
  CHECK(workers.running() == 0);
}

}  // namespace
}  // namespace scaletrain::launcher
