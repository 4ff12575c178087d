#include "launcher/workers/worker_group.h"

#include <doctest/doctest.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
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

// An observer whose answers a test chooses.
struct ScriptedObserver : GroupObserver {
  void started(const WorkerPlan& plan, pid_t pid) override { on_started(plan, pid); }
  std::optional<Hang> watch(const std::vector<RunningWorker>& running) override {
    return on_watch(running);
  }
  void peer_lost() override { ++peers_lost; }
  bool tolerates_loss(const WorkerEnd& end) override {
    asked.push_back(end.rank);
    return tolerated.contains(end.rank);
  }
  std::vector<int> evicted_with(const WorkerEnd&) override { return evicted; }
  void loss_tolerated(const WorkerEnd& end, const std::optional<Hang>& hang) override {
    lost = end.rank;
    why = hang ? hang->what : "";
    on_tolerated();
  }

  std::function<void(const WorkerPlan&, pid_t)> on_started = [](const WorkerPlan&, pid_t) {};
  std::function<std::optional<Hang>(const std::vector<RunningWorker>&)> on_watch =
      [](const std::vector<RunningWorker>&) { return std::optional<Hang>(); };
  std::function<void()> on_tolerated = [] {};
  std::set<int> tolerated{};   // ranks whose loss is tolerated
  std::vector<int> evicted{};  // ranks that are evicted with them
  int peers_lost = 0;
  std::vector<int> asked{};  // ranks whose loss was judged
  int lost = -1;             // the last rank whose loss was tolerated
  std::string why{};         // why that rank hung; "": it did not
};

// Other nodes whose news is there as soon as `fd` is readable.
struct ScriptedNodes : NodeLink {
  ScriptedNodes(int changes, NodeNews what) : fd(changes), news(std::move(what)) {}
  int changes_fd() const override { return fd; }
  NodeNews read_news() override {
    on_read();
    return news;
  }

  int fd;
  NodeNews news;
  std::function<void()> on_read = [] {};
};

GroupEnd run_plans(const std::vector<WorkerPlan>& plans, ScriptedObserver& observer,
                   ScriptedNodes* nodes = nullptr, std::chrono::milliseconds grace = {}) {
  GroupOptions options;
  options.grace = grace;
  options.observer = &observer;
  options.watch_every = std::chrono::milliseconds(10);
  options.nodes = nodes;
  StopSignals signals({});
  return run_group(plans, options, signals);
}

std::vector<WorkerPlan> plan_of_one(std::vector<std::string> arguments) {
  std::vector<WorkerPlan> plans(1);
  plans[0].process.arguments = std::move(arguments);
  return plans;
}

}  // namespace

TEST_CASE("a worker that had ended when other nodes stopped the rest was not ended by them") {
  const auto plans = plan_of_one({"/bin/sh", "-c", "kill -KILL $$"});
  const core::Descriptor news(eventfd(1, EFD_CLOEXEC));  // before anything else is seen
  ScriptedObserver observer;
  observer.on_started = [](const WorkerPlan&, pid_t pid) { await_end(pid); };
  ScriptedNodes nodes(news.get(), {.stop = true});
  const GroupEnd end = run_plans(plans, observer, &nodes);
  REQUIRE(end.workers.size() == 1);
  CHECK(end.workers[0].status.signal == SIGKILL);
  CHECK_FALSE(end.workers[0].was_stopped);
}

TEST_CASE("a lost peer is announced when a worker has failed, not when one is done") {
  for (const bool fails : {false, true}) {
    CAPTURE(fails);
    ScriptedObserver observer;
    run_plans(plan_of_one({"/bin/sh", "-c", fails ? "exit 3" : "exit 0"}), observer);
    CHECK(observer.peers_lost == (fails ? 1 : 0));
  }
}

TEST_CASE("the others go on without a worker whose loss is tolerated") {
  std::vector<WorkerPlan> plans(2);
  for (int rank = 0; rank < 2; ++rank) plans[static_cast<std::size_t>(rank)].rank = rank;
  plans[1].local_rank = 1;
  const core::Descriptor goes_on(eventfd(0, EFD_CLOEXEC));
  plans[0].process.arguments = {"/bin/dd", "bs=8", "count=1", "of=/dev/null", "status=none"};
  plans[0].process.descriptors = {{goes_on.get(), 0}};
  plans[1].process.arguments = {"/bin/sh", "-c", "exit 3"};
  ScriptedObserver observer;
  observer.tolerated = {1};
  observer.on_tolerated = [&] {
    REQUIRE(eventfd_write(goes_on.get(), 1) == 0);  // the other ends only now
  };
  const GroupEnd end = run_plans(plans, observer);
  REQUIRE(end.workers.size() == 2);
  CHECK(observer.lost == 1);
  CHECK(observer.why.empty());
  CHECK(observer.peers_lost == 0);
  CHECK(end.workers[0].was_tolerated);
  CHECK(end.workers[1].status.ok());
  CHECK_FALSE(end.workers[1].was_stopped);
}

TEST_CASE("ranks that need a lost worker are evicted with it and are not the cause") {
  // 3 ends and 2 is evicted, which would wait for ever; 1 has ended before, as it has lost 3.
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
  ScriptedObserver observer;
  observer.on_started = [](const WorkerPlan& plan, pid_t pid) {
    if (plan.rank == 1 || plan.rank == 3) await_end(pid);
  };
  observer.tolerated = {0, 1, 2, 3};
  observer.evicted = {1, 2};
  observer.on_tolerated = [&] { REQUIRE(eventfd_write(goes_on.get(), 1) == 0); };
  const GroupEnd end = run_plans(plans, observer);
  REQUIRE(end.workers.size() == 4);
  CHECK(observer.asked == std::vector<int>{3});
  CHECK(observer.lost == 3);
  CHECK(observer.peers_lost == 0);
  for (const WorkerEnd& one : end.workers) {
    CHECK(one.was_tolerated == (one.rank != 0));
    if (one.rank == 2) CHECK(one.status.signal == SIGKILL);
  }
}

TEST_CASE("ranks are evicted with replicas that other nodes have lost, and the others go on") {
  std::vector<WorkerPlan> plans(2);
  for (int rank = 0; rank < 2; ++rank) {
    plans[static_cast<std::size_t>(rank)].rank = rank;
    plans[static_cast<std::size_t>(rank)].local_rank = rank;
  }
  const core::Descriptor goes_on(eventfd(0, EFD_CLOEXEC)), news(eventfd(1, EFD_CLOEXEC));
  plans[0].process.arguments = {"/bin/dd", "bs=8", "count=1", "of=/dev/null", "status=none"};
  plans[0].process.descriptors = {{goes_on.get(), 0}};
  plans[1].process.arguments = {"/bin/sleep", "1000"};
  ScriptedObserver observer;
  ScriptedNodes nodes(news.get(), {.evicted = {1}});
  nodes.on_read = [&] {
    std::uint64_t count = 0;
    REQUIRE(eventfd_read(news.get(), &count) == 0);
    REQUIRE(eventfd_write(goes_on.get(), 1) == 0);
  };
  const GroupEnd end = run_plans(plans, observer, &nodes);
  REQUIRE(end.workers.size() == 2);
  CHECK(observer.asked.empty());
  CHECK(observer.peers_lost == 0);
  CHECK_FALSE(end.nodes_stopped);
  for (const WorkerEnd& one : end.workers) {
    CHECK(one.was_tolerated == (one.rank == 1));
    CHECK(one.status.signal == (one.rank == 1 ? SIGKILL : 0));
  }
}

TEST_CASE("during a stop a loss is tolerated only if another process's signal ended the worker") {
  for (const std::string other : {"KILL", "SEGV", "TERM"}) {
    CAPTURE(other);
    const test::TemporaryFolder folder;
    const std::string ready = folder.file("ready");
    const auto plans = plan_of_one({"/bin/sh", "-c",
                                    "trap 'trap - TERM; kill -" + other + " $$' TERM; : > " +
                                        ready + "; while :; do sleep 0.02; done"});
    const core::Descriptor news(eventfd(1, EFD_CLOEXEC));
    ScriptedObserver observer;
    observer.on_started = [&](const WorkerPlan&, pid_t) {
      while (!std::filesystem::exists(ready)) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
    };
    observer.tolerated = {0};
    ScriptedNodes nodes(news.get(), {.stop = true});
    const GroupEnd end = run_plans(plans, observer, &nodes, std::chrono::seconds(60));
    REQUIRE(end.workers.size() == 1);
    CHECK(end.workers[0].was_tolerated == (other != "TERM"));
  }
}

TEST_CASE("a hanging worker whose loss is tolerated is killed alone") {
  std::vector<WorkerPlan> plans(2);
  for (int rank = 0; rank < 2; ++rank) plans[static_cast<std::size_t>(rank)].rank = rank;
  plans[1].local_rank = 1;
  const core::Descriptor goes_on(eventfd(0, EFD_CLOEXEC));
  plans[0].process.arguments = {"/bin/dd", "bs=8", "count=1", "of=/dev/null", "status=none"};
  plans[0].process.descriptors = {{goes_on.get(), 0}};
  plans[1].process.arguments = {"/bin/sleep", "600"};
  ScriptedObserver observer;
  observer.tolerated = {1};
  observer.on_tolerated = [&] { REQUIRE(eventfd_write(goes_on.get(), 1) == 0); };
  observer.on_watch = [](const std::vector<RunningWorker>& running) -> std::optional<Hang> {
    for (const RunningWorker& one : running) {
      if (one.rank == 1) return Hang{.rank = 1, .local_rank = 1, .pid = one.pid, .what = "stands"};
    }
    return std::nullopt;
  };
  const GroupEnd end = run_plans(plans, observer);
  CHECK(observer.why == "stands");
  CHECK_FALSE(end.hang);
  REQUIRE(end.workers.size() == 2);
  CHECK(end.workers[0].status.signal == SIGKILL);
  CHECK(end.workers[0].was_tolerated);
  CHECK(end.workers[1].status.ok());
}

TEST_CASE("ends that are seen at once are ordered by time, whatever their ranks") {
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
    ScriptedObserver observer;
    observer.on_started = [&](const WorkerPlan&, pid_t pid) {
      pids.push_back(pid);
      if (pids.size() < 3) return;
      for (int i = 0; i < 3; ++i) {  // all have ended before the group looks
        const auto rank = static_cast<std::size_t>((first + i) % 3);
        REQUIRE(eventfd_write(starts[rank].get(), 1) == 0);
        await_end(pids[rank]);
      }
    };
    const GroupEnd end = run_plans(plans, observer);
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
  const core::Descriptor news(eventfd(1, EFD_CLOEXEC));
  ScriptedObserver observer;
  ScriptedNodes nodes(news.get(), {.stop = true, .peer_lost = true});
  const GroupEnd end = run_plans(plans, observer, &nodes, std::chrono::seconds(60));
  REQUIRE(end.workers.size() == 1);
  CHECK(observer.peers_lost > 0);
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
    const core::Descriptor news(eventfd(0, EFD_CLOEXEC));
    const std::string script = std::string("trap '") + one.at_term +
                               "' TERM; printf '\\1\\0\\0\\0\\0\\0\\0\\0';"
                               "while :; do sleep 0.02; done";
    auto plans = plan_of_one({"/bin/sh", "-c", script});
    plans[0].process.descriptors = {{news.get(), 1}};
    ScriptedObserver observer;
    ScriptedNodes nodes(news.get(), {.stop = true});
    const GroupEnd end = run_plans(plans, observer, &nodes, one.grace);
    REQUIRE(end.workers.size() == 1);
    CHECK(end.workers[0].status.signal == SIGKILL);
    CHECK(end.workers[0].was_stopped);
    CHECK(end.workers[0].was_killed == one.was_killed);
  }
}

}  // namespace scaletrain::launcher
