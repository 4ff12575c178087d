#include "lib/train/loop/meetings.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <utility>

#include "lib/core/log.h"
#include "lib/train/state/replica_states.h"
#include "tests/train/apart_replicas.h"

namespace scaletrain::train {
namespace {

namespace fs = std::filesystem;
using testing::ApartReplica;

constexpr const char* kRareSync =
    R"(sync={"name": "diloco", "steps": 8, "outer": {"lr": 1, "momentum": 0.9}})";

}  // namespace

TEST_CASE("rank 0 gets what it needs for what it does behind an exchange") {
  struct Case {
    bool validates, saves;
    int keep_best;
    std::string given;
  };
  const std::string buffers = "buffers/seen [0 1 2] ";
  const std::string all = buffers + "optimizer/momentum_buffer/weight [0 0 0] 012";
  const std::vector<Case> cases{{false, false, 1, "nothing"},
                                {true, false, 0, buffers + "012"},
                                {true, false, 1, all},
                                {false, true, 0, all},
                                {false, false, 0, "nothing"}};
  const auto results = testing::run_apart({}, [&](ApartReplica& replica) {
    Meetings meetings(*replica.run, 30);
    replica.come_to(4);
    std::string wrong;
    for (const Case& one : cases) {
      replica.run->recipe.checkpoint.keep_best = one.keep_best;
      const auto phase = replica.phase_of([&] { meetings.share(one.validates, one.saves); });
      const std::string given = replica.rank == 0 ? one.given : "nothing";
      if (replica.given() != given || phase != "waiting") {
        wrong += fmt::format("{} {}; ", replica.given(), phase);
      }
    }
    meetings.finish();
    return wrong;
  });
  for (const auto& result : results) CHECK(result.text.empty());
}

TEST_CASE("replicas that stop train to the furthest one's step, where all is shared") {
  const auto results = testing::run_apart({kRareSync}, [](ApartReplica& replica) {
    Run& run = *replica.run;
    Meetings meetings(run, 30);
    const core::SteadyTime before = core::now();
    if (meetings.stopped_since(before) != before) return std::string("stopped before");
    replica.come_to(std::array{2, 3, 5}.at(static_cast<std::size_t>(replica.rank)));
    // Rank 1 hears of it.
    core::StopReason stop =
        replica.rank == 1 ? core::StopReason::kInterrupt : core::StopReason::kNone;
    bool is_there = false;
    std::string said;
    const auto phase = replica.phase_of([&] {
      do {
        is_there = meetings.is_at_stop(stop);
      } while (stop == core::StopReason::kNone && core::seconds_since(before) < 30);
    });
    while (!is_there && run.state.step < 8) {
      replica.come_to(run.state.step + 1);
      is_there = meetings.is_at_stop(stop);
    }
    const core::SteadyTime later = core::now();
    said += fmt::format("{}, {} at {}, {}; ", phase, static_cast<int>(stop), run.state.step,
                        meetings.stopped_since(later) < later ? "before" : "now");
    if (replica.rank == 1) {  // slowly
      run.sync->exchange_all();
      share_states(run, Wish::kNothing);
      usleep(500'000);
      run.sync->rounds()->leave(std::chrono::seconds(5));
    } else {
      meetings.stop();
    }
    said += fmt::format("{:g} {}", replica.weight(), replica.given());
    return replica.rank == 0 ? said + "; " + replica.places() : said;
  });
  // They learn (0 + 1 + 2) / 3 together; DiLoCo's outer step is 1 + 0.9 of that.
  CHECK(results[0].text ==
        "waiting, 1 at 5, before; 1.9 buffers/seen [0 1 2] optimizer/momentum_buffer/weight [0 0 "
        "0] 012; "
        "5 left, 5 left, 5 left");
  CHECK(results[1].text == "waiting, 2 at 5, before; 1.9 nothing");
  CHECK(results[2].text == "waiting, 1 at 5, before; 1.9 nothing");
}

TEST_CASE("a stop that leaves no time takes no further step, and waits for nobody for long") {
  const testing::TinyRun tiny;
  const std::string done = tiny.path("done");
  const auto results = testing::run_apart({kRareSync}, [&](ApartReplica& replica) -> std::string {
    std::string said;
    core::set_warning_listener([&](const std::string&) { said += "warned, "; });
    Meetings meetings(*replica.run, 0.01);
    core::StopReason stop = core::StopReason::kTerminate;
    if (replica.rank == 2) {  // does not look for a stop, for a while
      for (int i = 0; i < 7000 && !fs::exists(done); ++i) usleep(1000);
      if (fs::exists(done)) return "alone";
    }
    replica.come_to(2 + replica.rank);
    said += meetings.is_at_stop(stop) ? "there" : "not there";
    meetings.stop();
    if (replica.rank == 0) std::ofstream(done) << "done";
    return said + fmt::format(" at {}", replica.run->state.step);
  });
  CHECK(results[0].text == "warned, there at 2");
  CHECK(results[1].text == "there at 3");
  CHECK(results[2].text == "alone");
}

TEST_CASE("behind the last exchange a stop shares nothing a second time, and rank 0 leaves last") {
  for (const bool hears : {false, true}) {
    for (const bool stops : {false, true}) {
      const auto results = testing::run_apart({}, [&](ApartReplica& replica) {
        Run& run = *replica.run;
        Meetings meetings(run, 30);
        replica.come_to(8);
        meetings.share(/*validates=*/false, /*saves=*/true);
        std::string said = std::exchange(run.replicas, {}).empty() ? "nothing, " : "shared, ";
        core::StopReason stop = core::StopReason::kTerminate;
        if (hears && !meetings.is_at_stop(stop)) said += "not there, ";
        if (replica.rank == 1) usleep(300'000);
        said += replica.phase_of([&] { stops ? meetings.stop() : meetings.finish(); });
        if (replica.rank == 0) said += ", " + replica.places();
        return said + ", " + replica.given();
      });
      CHECK(results[0].text == "shared, waiting, 8 left, 8 left, 8 left, nothing");
      CHECK(results[1].text == "nothing, waiting, nothing");
      CHECK(results[2].text == "nothing, waiting, nothing");
    }
  }
}

TEST_CASE("other replicas stop with what they have exchanged, and each on its own word") {
  for (const std::string sync : {R"({"name": "periodic", "steps": 4})", "\"every_step\""}) {
    for (const auto& result : testing::run_apart({"sync=" + sync}, [&](ApartReplica& replica) {
           Meetings meetings(*replica.run, 30);
           replica.come_to(2);
           core::StopReason none = core::StopReason::kNone, stop = core::StopReason::kInterrupt;
           std::string said = meetings.is_at_stop(none) ? "stops " : "";
           said += meetings.is_at_stop(stop) ? "at the stop, " : "";
           meetings.share(/*validates=*/true, /*saves=*/true);
           meetings.stop();
           meetings.finish();
           said += replica.weight() == (replica.run->sync ? 1 : replica.rank) ? "" : "others, ";
           replica.run->mesh->end("end");
           return said + replica.given();
         })) {
      CHECK(result.text == "at the stop, nothing");
    }
  }
}

}  // namespace scaletrain::train
