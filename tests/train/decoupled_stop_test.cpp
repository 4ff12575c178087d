// How decoupled replicas of a run share states and stop (lib/local_sgd/decoupled_diloco.h).
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <utility>

#include "lib/core/log.h"
#include "tests/train/apart_replicas.h"

namespace scaletrain::train {
namespace {

namespace fs = std::filesystem;
using local_sgd::StateRequest;
using testing::ApartReplica;

constexpr const char* kRareSync =
    R"(sync={"name": "diloco", "steps": 8, "outer": {"lr": 1, "momentum": 0.9}})";

}  // namespace

TEST_CASE("rank 0 receives the states that an evaluation or a save needs") {
  struct Case {
    StateRequest request;
    std::string received;
  };
  const std::string buffers = "buffers/seen [0 1 2] ";
  const std::vector<Case> cases{
      {StateRequest::kNothing, "nothing"},
      {StateRequest::kEvaluation, buffers + "012"},
      {StateRequest::kSave, buffers + "optimizer/momentum_buffer/weight [0 0 0] 012"},
      {StateRequest::kNothing, "nothing"}};
  const auto results = testing::run_apart({}, [&](ApartReplica& replica) {
    replica.come_to(4);
    std::string wrong;
    for (const Case& one : cases) {
      const auto phase = replica.phase_of([&] { replica.run->replicas->share(one.request); });
      const std::string received = replica.rank == 0 ? one.received : "nothing";
      if (replica.given() != received || phase != "waiting") {
        wrong += fmt::format("{} {}; ", replica.given(), phase);
      }
    }
    replica.run->replicas->finish();
    return wrong;
  });
  for (const auto& result : results) CHECK(result.text.empty());
}

TEST_CASE("replicas that stop train to the furthest one's step, where rank 0 gets all states") {
  const auto results = testing::run_apart({kRareSync}, [](ApartReplica& replica) {
    local_sgd::Replicas& replicas = *replica.run->replicas;
    replica.come_to(std::array{2, 3, 5}.at(static_cast<std::size_t>(replica.rank)));
    // Rank 1 has the signal.
    core::StopReason stop =
        replica.rank == 1 ? core::StopReason::kInterrupt : core::StopReason::kNone;
    bool trains_on = true;
    const core::SteadyTime before = core::now();
    const auto phase = replica.phase_of([&] {
      do {
        trains_on = replicas.before_step(stop);
      } while (stop == core::StopReason::kNone && core::seconds_since(before) < 30);
    });
    while (trains_on && replica.run->state.step < 8) {
      replica.come_to(replica.run->state.step + 1);
      trains_on = replicas.before_step(stop);
    }
    std::string said =
        fmt::format("{}, {} at {}; ", phase, static_cast<int>(stop), replica.run->state.step);
    replicas.stop();
    said += fmt::format("{:g} {}", replica.weight(), replica.given());
    return replica.rank == 0 ? said + "; " + replica.membership() : said;
  });
  // They learn (0 + 1 + 2) / 3 together; DiLoCo's outer step is 1 + 0.9 of that.
  CHECK(results[0].text ==
        "waiting, 1 at 5; 1.9 buffers/seen [0 1 2] optimizer/momentum_buffer/weight [0 0 0] 012; "
        "5 left, 5 left, 5 left");
  CHECK(results[1].text == "waiting, 2 at 5; 1.9 nothing");
  CHECK(results[2].text == "waiting, 1 at 5; 1.9 nothing");
}

TEST_CASE("a stop that leaves no time takes no further step, and waits for nobody for long") {
  const testing::TinyRun tiny;
  const std::string done = tiny.path("done");
  const auto results = testing::run_apart(
      {kRareSync},
      [&](ApartReplica& replica) -> std::string {
        std::string said;
        core::set_warning_listener([&](const std::string&) { said += "warned, "; });
        core::StopReason stop = core::StopReason::kTerminate;
        if (replica.rank == 2) {  // does not look for a stop, for a while
          for (int i = 0; i < 7000 && !fs::exists(done); ++i) usleep(1000);
          if (fs::exists(done)) return "alone";
        }
        replica.come_to(2 + replica.rank);
        said += replica.run->replicas->before_step(stop) ? "trains on" : "there";
        replica.run->replicas->stop();
        if (replica.rank == 0) std::ofstream(done) << "done";
        return said + fmt::format(" at {}", replica.run->state.step);
      },
      /*grace_s=*/0.01);
  CHECK(results[0].text == "warned, there at 2");
  CHECK(results[1].text == "there at 3");
  CHECK(results[2].text == "alone");
}

TEST_CASE("after the last synchronization a stop shares nothing again, and rank 0 leaves last") {
  for (const bool asks : {false, true}) {
    for (const bool stops : {false, true}) {
      const auto results = testing::run_apart({}, [&](ApartReplica& replica) {
        local_sgd::Replicas& replicas = *replica.run->replicas;
        replica.come_to(8);
        replicas.share(StateRequest::kSave);
        std::string said = replicas.states().empty() ? "nothing, " : "shared, ";
        replicas.forget_states();
        core::StopReason stop = core::StopReason::kTerminate;
        if (asks && replicas.before_step(stop)) said += "not there, ";
        if (replica.rank == 1) usleep(300'000);
        said += replica.phase_of([&] { stops ? replicas.stop() : replicas.finish(); });
        if (replica.rank == 0) said += ", " + replica.membership();
        return said + ", " + replica.given();
      });
      CHECK(results[0].text == "shared, waiting, 8 left, 8 left, 8 left, nothing");
      CHECK(results[1].text == "nothing, waiting, nothing");
      CHECK(results[2].text == "nothing, waiting, nothing");
    }
  }
}

TEST_CASE("replicas that share collectives average at a stop, and each knows its own signal") {
  for (const std::string sync : {R"({"name": "periodic", "steps": 4})", "\"every_step\""}) {
    for (const auto& result : testing::run_apart({"sync=" + sync}, [&](ApartReplica& replica) {
           local_sgd::Replicas& replicas = *replica.run->replicas;
           replica.come_to(2);
           core::StopReason none = core::StopReason::kNone, stop = core::StopReason::kInterrupt;
           std::string said = replicas.before_step(none) ? "" : "stops ";
           said += replicas.before_step(stop) ? "" : "at the stop, ";
           replicas.share(StateRequest::kSave);
           replicas.stop();
           replicas.finish();
           said +=
               replica.weight() == (sync == "\"every_step\"" ? replica.rank : 1) ? "" : "others, ";
           replica.run->mesh->end("end");
           return said + replica.given();
         })) {
      CHECK(result.text == "at the stop, nothing");
    }
  }
}

}  // namespace scaletrain::train
