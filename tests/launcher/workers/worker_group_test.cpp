#include "launcher/workers/worker_group.h"

#include <doctest/doctest.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lib/core/descriptor.h"
#include "tests/temporary_folder.h"

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
  options.hear_nodes = [] { return NodesWord{.stop = true}; };
  StopSignals signals({});
  const GroupEnd end = run_group(plans, options, signals);
  REQUIRE(end.workers.size() == 1);
  CHECK(end.workers[0].status.signal == SIGKILL);
  CHECK_FALSE(end.workers[0].was_stopped);
}

TEST_CASE("the workers are told that a peer is gone when one has failed, not when one is done") {
  for (const bool fails : {false, true}) {
    CAPTURE(fails);
    int told = 0;
    GroupOptions options;
    options.peer_lost = [&] { ++told; };
    StopSignals signals({});
    run_group(plan_of_one({"/bin/sh", "-c", fails ? "exit 3" : "exit 0"}), options, signals);
    CHECK(told == (fails ? 1 : 0));
  }
}

TEST_CASE("the others go on without a worker that may be lost") {
  std::vector<WorkerPlan> plans(2);
  for (int rank = 0; rank < 2; ++rank) plans[static_cast<std::size_t>(rank)].rank = rank;
  plans[1].local_rank = 1;
  const core::Descriptor goes_on(eventfd(0, EFD_CLOEXEC));
  plans[0].process.arguments = {"/bin/dd", "bs=8", "count=1", "of=/dev/null", "status=none"};
  plans[0].process.descriptors = {{goes_on.get(), 0}};
  plans[1].process.arguments = {"/bin/sh", "-c", "exit 3"};
  int told = 0, lost = -1;
  GroupOptions options;
  options.peer_lost = [&] { ++told; };
  options.may_be_lost = [](const WorkerEnd& end) { return end.rank == 1; };
  options.outlived = [&](const WorkerEnd& end, const std::optional<Hang>& hang) {
    lost = hang ? -2 : end.rank;
    REQUIRE(eventfd_write(goes_on.get(), 1) == 0);  // the other ends only now
  };
  StopSignals signals({});
  const GroupEnd end = run_group(plans, options, signals);
  REQUIRE(end.workers.size() == 2);
  CHECK(lost == 1);
  CHECK(told == 0);
  CHECK(end.workers[0].was_outlived);
  CHECK(end.workers[1].status.ok());
  CHECK_FALSE(end.workers[1].was_stopped);
}

TEST_CASE("with one that may be lost go those that cannot do without it, and are not the cause") {
  // 3 ends and takes 2 along, which would wait for ever; 1 has ended before, as it has lost 3.
  std::vector<WorkerPlan> plans(4);
  const core::Descriptor goes_on(eventfd(0, EFD_CLOEXEC));
  for (int rank = 0; rank < 4; ++rank) {
    plans[static_cast<std::size_t>(rank)].rank = rank;
    plans[static_cast<std::size_t>(rank)].local_rank = rank;
  }
  plans[0].process.arguments = {"/bin/dd", "bs=8", "count=1", "of=/dev/null", "status=none"};
  plans[0].process.descriptors = {{goes_on.get(), 0}};
  plans[1].process.arguments = {"/bin/sh", "-c", "exit 75"};
  plans[2].process.arguments = {"/bin/sleep", "1000"};
  plans[3].process.arguments = {"/bin/sh", "-c", "exit 3"};
  std::vector<int> asked;
  int told = 0, lost = -1;
  GroupOptions options;
  options.peer_lost = [&] { ++told; };
  options.started = [](const WorkerPlan& plan, pid_t pid) {
    if (plan.rank == 1 || plan.rank == 3) await_end(pid);
  };
  options.may_be_lost = [&](const WorkerEnd& end) {
    asked.push_back(end.rank);
    return true;
  };
  options.taken_along = [](const WorkerEnd&) { return std::vector<int>{1, 2}; };
  options.outlived = [&](const WorkerEnd& end, const std::optional<Hang>&) {
    lost = end.rank;
    REQUIRE(eventfd_write(goes_on.get(), 1) == 0);
  };
  StopSignals signals({});
  const GroupEnd end = run_group(plans, options, signals);
  REQUIRE(end.workers.size() == 4);
  CHECK(asked == std::vector<int>{3});
  CHECK(lost == 3);
  CHECK(told == 0);
  for (const WorkerEnd& one : end.workers) {
    CHECK(one.was_outlived == (one.rank != 0));
    if (one.rank == 2) CHECK(one.status.signal == SIGKILL);
  }
}

TEST_CASE("ranks go with those that other nodes have lost, and the others go on") {
  std::vector<WorkerPlan> plans(2);
  for (int rank = 0; rank < 2; ++rank) {
    plans[static_cast<std::size_t>(rank)].rank = rank;
    plans[static_cast<std::size_t>(rank)].local_rank = rank;
  }
  const core::Descriptor goes_on(eventfd(0, EFD_CLOEXEC)), told(eventfd(1, EFD_CLOEXEC));
  plans[0].process.arguments = {"/bin/dd", "bs=8", "count=1", "of=/dev/null", "status=none"};
  plans[0].process.descriptors = {{goes_on.get(), 0}};
  plans[1].process.arguments = {"/bin/sleep", "1000"};
  GroupOptions options;
  int lost = 0;
  options.nodes_fd = told.get();
  options.hear_nodes = [&] {
    std::uint64_t count = 0;
    REQUIRE(eventfd_read(told.get(), &count) == 0);
    REQUIRE(eventfd_write(goes_on.get(), 1) == 0);
    return NodesWord{.lost_with = {1}};
  };
  options.peer_lost = [&] { ++lost; };
  options.may_be_lost = [&](const WorkerEnd&) { return false; };  // it is not asked
  StopSignals signals({});
  const GroupEnd end = run_group(plans, options, signals);
  REQUIRE(end.workers.size() == 2);
  CHECK(lost == 0);
  CHECK_FALSE(end.nodes_stopped);
  for (const WorkerEnd& one : end.workers) {
    CHECK(one.was_outlived == (one.rank == 1));
    CHECK(one.status.signal == (one.rank == 1 ? SIGKILL : 0));
  }
}

TEST_CASE(
    "during a stop the one is lost that another's signal ends, not that the launcher's does") {
  for (const std::string other : {"KILL", "SEGV", "TERM"}) {
    CAPTURE(other);
    const test::TemporaryFolder folder;
    const std::string ready = folder.file("ready");
    const auto plans = plan_of_one({"/bin/sh", "-c",
                                    "trap 'trap - TERM; kill -" + other + " $$' TERM; : > " +
                                        ready + "; while :; do sleep 0.02; done"});
    const core::Descriptor told(eventfd(1, EFD_CLOEXEC));
    GroupOptions options;
    options.grace = std::chrono::seconds(60);
    options.started = [&](const WorkerPlan&, pid_t) {
      while (!std::filesystem::exists(ready)) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
    };
    options.nodes_fd = told.get();
    options.hear_nodes = [] { return NodesWord{.stop = true}; };
    options.may_be_lost = [](const WorkerEnd&) { return true; };
    options.outlived = [](const WorkerEnd&, const std::optional<Hang>&) {};
    StopSignals signals({});
    const GroupEnd end = run_group(plans, options, signals);
    REQUIRE(end.workers.size() == 1);
    CHECK(end.workers[0].was_outlived == (other != "TERM"));
  }
}

TEST_CASE("of two that hang the one that may be lost is killed alone") {
  std::vector<WorkerPlan> plans(2);
  for (int rank = 0; rank < 2; ++rank) plans[static_cast<std::size_t>(rank)].rank = rank;
  plans[1].local_rank = 1;
  const core::Descriptor goes_on(eventfd(0, EFD_CLOEXEC));
  plans[0].process.arguments = {"/bin/dd", "bs=8", "count=1", "of=/dev/null", "status=none"};
  plans[0].process.descriptors = {{goes_on.get(), 0}};
  plans[1].process.arguments = {"/bin/sleep", "600"};
  std::string why;
  GroupOptions options;
  options.may_be_lost = [](const WorkerEnd& end) { return end.rank == 1; };
  options.outlived = [&](const WorkerEnd&, const std::optional<Hang>& hang) {
    why = hang ? hang->what : "";
    REQUIRE(eventfd_write(goes_on.get(), 1) == 0);
  };
  options.watch_every = std::chrono::milliseconds(10);
  options.watch = [](const std::vector<RunningWorker>& running) -> std::optional<Hang> {
    for (const RunningWorker& one : running) {
      if (one.rank == 1) return Hang{.rank = 1, .local_rank = 1, .pid = one.pid, .what = "stands"};
    }
    return std::nullopt;
  };
  StopSignals signals({});
  const GroupEnd end = run_group(plans, options, signals);
  CHECK(why == "stands");
  CHECK_FALSE(end.hang);
  REQUIRE(end.workers.size() == 2);
  CHECK(end.workers[0].status.signal == SIGKILL);
  CHECK(end.workers[0].was_outlived);
  CHECK(end.workers[1].status.ok());
}

TEST_CASE("of ends that are seen at once the first was the first, whatever its rank") {
  for (const int first : {0, 1, 2}) {
    std::vector<WorkerPlan> plans(3);
    std::vector<core::Descriptor> starts;
    for (int rank = 0; rank < 3; ++rank) {
      WorkerPlan& plan = plans[static_cast<std::size_t>(rank)];
      plan.rank = plan.local_rank = rank;
      const int start = starts.emplace_back(eventfd(0, EFD_CLOEXEC)).get();
      plan.process.arguments = {"/bin/dd", "bs=8", "count=1", "of=/dev/null", "status=none"};
      plan.process.descriptors = {{start, 0}};
    }
    std::vector<pid_t> pids;
    GroupOptions options;
    options.started = [&](const WorkerPlan&, pid_t pid) {
      pids.push_back(pid);
      if (pids.size() < 3) return;
      for (int i = 0; i < 3; ++i) {  // all have ended before the group looks
        const auto rank = static_cast<std::size_t>((first + i) % 3);
        REQUIRE(eventfd_write(starts[rank].get(), 1) == 0);
        await_end(pids[rank]);
      }
    };
    StopSignals signals({});
    const GroupEnd end = run_group(plans, options, signals);
    REQUIRE(end.workers.size() == 3);
    for (int i = 0; i < 3; ++i) {
      CHECK(end.workers[static_cast<std::size_t>(i)].rank == (first + i) % 3);
    }
  }
}

TEST_CASE("a signal that has come already does not end the process as it leaves") {
  { const StopSignals signals({}); }
  CHECK(raise(SIGTERM) == 0);
  StopSignals again({});
  CHECK(again.next() == SIGTERM);
}

TEST_CASE("other nodes stop workers that run") {
  const auto plans = plan_of_one({"/bin/sleep", "1000"});
  const core::Descriptor told(eventfd(1, EFD_CLOEXEC));
  GroupOptions options;
  options.grace = std::chrono::seconds(60);
  options.nodes_fd = told.get();
  options.hear_nodes = [] { return NodesWord{.stop = true}; };
  StopSignals signals({});
  const GroupEnd end = run_group(plans, options, signals);
  REQUIRE(end.workers.size() == 1);
  CHECK(end.nodes_stopped);
  CHECK(end.workers[0].status.signal == SIGTERM);
  CHECK(end.workers[0].was_stopped);
}

TEST_CASE("SIGKILL is the launcher's own only where it sent it") {
  const struct {
    const char* at_term;  // what the worker does then
    std::chrono::milliseconds grace;
    bool was_killed;
  } cases[]{{"kill -KILL $$", std::chrono::seconds(60), false},
            {"", std::chrono::milliseconds(10), true}};
  for (const auto& one : cases) {
    // The worker asks for its stop when it is ready: eight bytes are a number for an eventfd.
    const core::Descriptor told(eventfd(0, EFD_CLOEXEC));
    const std::string script = std::string("trap '") + one.at_term +
                               "' TERM; printf '\\1\\0\\0\\0\\0\\0\\0\\0';"
                               "while :; do sleep 0.02; done";
    auto plans = plan_of_one({"/bin/sh", "-c", script});
    plans[0].process.descriptors = {{told.get(), 1}};
    GroupOptions options;
    options.grace = one.grace;
    options.nodes_fd = told.get();
    options.hear_nodes = [] { return NodesWord{.stop = true}; };
    StopSignals signals({});
    const GroupEnd end = run_group(plans, options, signals);
    REQUIRE(end.workers.size() == 1);
    CHECK(end.workers[0].status.signal == SIGKILL);
    CHECK(end.workers[0].was_stopped);
    CHECK(end.workers[0].was_killed == one.was_killed);
  }
}

}  // namespace scaletrain::launcher
