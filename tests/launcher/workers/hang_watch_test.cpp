#include "launcher/workers/hang_watch.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>

#include "launcher/place/placement.h"

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)
using scaletrain::core::Beat;

namespace scaletrain::launcher {
namespace {

// Two workers that are this process: it does not answer for stacks, and is not stopped.
std::vector<RunningWorker> two() {
  return {{.rank = 4, .local_rank = 0, .pid = getpid()},
          {.rank = 5, .local_rank = 1, .pid = getpid()}};
}

TEST_CASE("the rank that stands still is the verdict, not the one that waits for it") {
  HangWatch watch(2, HangWatch::Workers::kOurs, 100ms, 8);
  Beat waits(watch.fd(0)), hangs(watch.fd(1));
  hangs.begin_step(7);
  hangs.enter(scaletrain::core::Phase::kData);
  waits.begin_step(7);
  waits.name_next("step consensus");
  waits.enter_collective("all-reduce");
  CHECK_FALSE(watch.judge(watch.look(two())).has_value());
  std::this_thread::sleep_for(150ms);
  const Hang hang = watch.judge(watch.look(two())).value();
  CHECK(hang.rank == 5);
  CHECK(hang.local_rank == 1);
  CHECK(hang.step == 7);
  CHECK(hang.what == "rank 5 on host " + host_name() +
                         " never arrived at all-reduce 1 of step 7 (step consensus)");
  REQUIRE(hang.lines.size() == 2);
  CHECK(hang.lines[0].find("rank 5, pid ") == 0);
  CHECK(hang.lines[0].find("in data, step 7, 0 collectives entered; ") != std::string::npos);
  CHECK(hang.lines[1].find("rank 4, pid ") == 0);
}

TEST_CASE("ranks of groups that do not wait for each other are judged by themselves") {
  HangWatch watch(2, HangWatch::Workers::kOurs, 100ms, 8);
  Beat ahead(watch.fd(0)), hangs(watch.fd(1));
  // Though it has entered more collectives than the other, which goes on.
  hangs.enter_collective("all-reduce");
  hangs.complete_collective();
  hangs.leave_collective();
  hangs.begin_step(7);
  hangs.enter(scaletrain::core::Phase::kData);
  const auto alone = [](int rank) { return rank; };
  CHECK_FALSE(watch.judge(watch.look(two()), alone).has_value());
  std::this_thread::sleep_for(150ms);
  ahead.begin_step(9);
  const std::vector<RankView> views = watch.look(two());
  CHECK_FALSE(watch.judge(views).has_value());
  CHECK(watch.judge(views, alone).value().rank == 5);
}

TEST_CASE("the shortest silence is sent to other nodes, and a rank that waits for them waits on") {
  std::chrono::milliseconds told(0), job(0);
  HangWatch watch(2, HangWatch::Workers::kOurs, 1ms, 8, [&](std::chrono::milliseconds own) {
    told = own;
    return job;
  });
  Beat first(watch.fd(0)), second(watch.fd(1));
  for (Beat* const beat : {&first, &second}) beat->enter_collective("all-reduce");
  watch.look(two());
  std::this_thread::sleep_for(20ms);
  second.enter_collective("all-reduce");
  std::vector<RankView> views = watch.look(two());
  CHECK(views[0].silent >= 20ms);
  CHECK(told < 20ms);
  first.enter_collective("all-reduce");
  views = watch.look(two());
  for (RankView& view : views) view.silent = 1h;  // as if the time had passed
  CHECK_FALSE(watch.judge(views).has_value());
  job = 1h;
  watch.look(two());
  CHECK(watch.judge(views)->what.find("waits in all-reduce 2") != std::string::npos);
}

TEST_CASE("a rank with heartbeats does not hang, and without a timeout no rank hangs") {
  HangWatch watch(2, HangWatch::Workers::kOurs, 100ms, 2);
  HangWatch patient(2, HangWatch::Workers::kOurs, 0ms, 2);
  Beat first(watch.fd(0)), second(watch.fd(1));
  for (int i = 0; i < 15; ++i) {
    std::this_thread::sleep_for(20ms);
    first.enter(scaletrain::core::Phase::kCompute);
    second.enter(scaletrain::core::Phase::kCompute);
    CHECK_FALSE(watch.judge(watch.look(two())).has_value());
    CHECK_FALSE(patient.judge(patient.look(two())).has_value());
  }
}

TEST_CASE("a launcher that slept itself gives everybody the whole time again") {
  HangWatch watch(2, HangWatch::Workers::kOurs, 10ms, 2);
  Beat first(watch.fd(0)), second(watch.fd(1));
  watch.look(two());
  std::this_thread::sleep_for(5 * watch.every() + 1100ms);
  CHECK_FALSE(watch.judge(watch.look(two())).has_value());
  std::this_thread::sleep_for(20ms);
  CHECK(watch.judge(watch.look(two())).has_value());
}

TEST_CASE("a program is watched from its first heartbeat on") {
  HangWatch watch(2, HangWatch::Workers::kPrograms, 50ms, 2);
  std::this_thread::sleep_for(70ms);
  std::vector<RankView> views = watch.look(two());
  CHECK(views[0].unwatched);
  CHECK_FALSE(watch.judge(views).has_value());
  std::ofstream("/proc/self/fd/" + std::to_string(watch.fd(1))) << "step 1\n";
  CHECK_FALSE(watch.judge(watch.look(two())).has_value());
  std::this_thread::sleep_for(70ms);
  views = watch.look(two());
  CHECK(views[0].unwatched);
  CHECK_FALSE(views[1].unwatched);
  CHECK(watch.judge(views).value().rank == 5);  // rank 4 was silent for longer, and never beat
}

TEST_CASE("any write to a program's heartbeat file counts, also of the same text") {
  HangWatch watch(2, HangWatch::Workers::kProgramsFromStart, 200ms, 2);
  const auto write = [&](int rank, const std::string& words) {
    std::ofstream("/proc/self/fd/" + std::to_string(watch.fd(rank))) << words << "\n";
  };
  write(0, "step 1");
  watch.look(two());
  for (int i = 0; i < 6; ++i) {
    std::this_thread::sleep_for(50ms);
    write(0, "step 1");
    const auto hang = watch.judge(watch.look(two()));
    if (!hang) continue;
    CHECK(hang->rank == 5);  // it never wrote
    CHECK(hang->what == "rank 5 on host " + host_name() + " does not beat");
    return;
  }
  FAIL("the silent one was not seen");
}

}  // namespace
}  // namespace scaletrain::launcher
