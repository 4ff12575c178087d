#include "lib/train/meetings.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "lib/core/log.h"
#include "lib/core/signals.h"
#include "lib/format/checkpoint_folder.h"
#include "lib/format/stored_tensors.h"
#include "lib/train/replica_states.h"
#include "tests/train/apart_replicas.h"

namespace scaletrain::train {
namespace {

namespace fs = std::filesystem;
using testing::ApartReplica;
using Changes = std::vector<std::string>;

// Runs of three replicas of DiLoCo, that exchange behind every 4 of 8 steps and are saved there.
class MeetingRuns {
 public:
  explicit MeetingRuns(Changes changes = {}) : changes_(std::move(changes)) {}

  recipe::Recipe recipe(const std::string& output, const Changes& more = {}) const {
    Changes all{"steps=8",
                R"(batch={"per_device": 2})",
                R"(optimizer={"name": "adamw", "lr": 0.01})",
                R"(sync={"name": "diloco", "steps": 4})",
                R"(validate.every={"steps": 4})",
                R"(checkpoint={"every": {"steps": 4}, "keep_last": 9})",
                R"(log.every={"steps": 1})",
                "output=" + tiny_.path(output)};
    all.insert(all.end(), changes_.begin(), changes_.end());
    all.insert(all.end(), more.begin(), more.end());
    return tiny_.recipe(all);
  }

  // On two nodes they exchange by collectives. `before`: what a rank does first.
  std::vector<testing::RankResult> run(
      const recipe::Recipe& asked, int nodes = 1, const std::optional<fs::path>& resume = {},
      const std::function<void(int rank)>& before = [](int) {}) const {
    return testing::run_ranks({.world_size = 3}, [&](const core::WorkerEnv& given) {
      core::WorkerEnv env = given;
      env.group_world_size = nodes;
      std::string warned;
      core::set_warning_listener([&](const std::string& line) { warned += "; " + line; });
      before(env.rank);
      return testing::ended(asked, resume, env) + warned;
    });
  }

  fs::path saved(const std::string& output, std::int64_t step) const {
    return format::checkpoint_path(fs::path(tiny_.path(output)) / "checkpoints", step);
  }
  nlohmann::json state(const std::string& output, std::int64_t step) const {
    std::ifstream file(saved(output, step) / "state.json");
    return nlohmann::json::parse(file);
  }
  std::vector<float> weights(const std::string& output, std::int64_t step) const {
    const format::StoredTensors model(saved(output, step) / "model.safetensors");
    std::vector<float> all;
    for (const format::TensorInfo& info : model.tensors()) {
      std::vector<float> values(static_cast<std::size_t>(info.end - info.begin) / sizeof(float));
      model.read(info, std::as_writable_bytes(std::span(values)));
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }
  // The bytes of the safetensors of a checkpoint.
  std::map<std::string, std::string> tensors(const std::string& output, std::int64_t step) const {
    std::map<std::string, std::string> files;
    for (const auto& file : fs::directory_iterator(saved(output, step))) {
      if (file.path().extension() != ".safetensors") continue;
      std::ifstream bytes(file.path(), std::ios::binary);
      files[file.path().filename()] = std::string(std::istreambuf_iterator<char>(bytes), {});
    }
    return files;
  }

 private:
  testing::TinyRun tiny_;
  Changes changes_;
};

constexpr const char* kRareSync =
    R"(sync={"name": "diloco", "steps": 8, "outer": {"lr": 1, "momentum": 0.9}})";
constexpr const char* kEndedWell = "code 0 after step 8";

void check_same(const std::map<std::string, std::string>& one,
                const std::map<std::string, std::string>& other) {
  REQUIRE(one.size() == other.size());
  CHECK(one.contains("ranks.safetensors"));
  for (const auto& [file, bytes] : one) {
    CAPTURE(file);
    const bool is_same = other.at(file) == bytes;
    CHECK(is_same);
  }
}

}  // namespace

TEST_CASE("replicas that meet in rounds save the bits of those that exchange by collectives") {
  const std::vector<Changes> cases{
      {},
      {R"(sync={"name": "diloco", "steps": 4, "fragments": 2})",
       R"(optimizer={"name": "sgd", "lr": 0.05})", "clip.norm=0.5"},
      {R"(model={"name": "resnet18", "num_classes": 3})",
       R"(sync={"name": "diloco", "steps": 2, "fragments": 2})"},
  };
  for (const Changes& changes : cases) {
    const std::string what = changes.empty() ? "plain" : changes.front();
    CAPTURE(what);
    const MeetingRuns runs(changes);
    for (const auto& result : runs.run(runs.recipe("apart"))) CHECK(result.text == kEndedWell);
    for (const auto& result : runs.run(runs.recipe("together"), 2)) {
      CHECK(result.text == kEndedWell);
    }
    check_same(runs.tensors("apart", 4), runs.tensors("together", 4));
    check_same(runs.tensors("apart", 8), runs.tensors("together", 8));
    CHECK(runs.state("apart", 8).at("best_metric").get<double>() ==
          doctest::Approx(runs.state("together", 8).at("best_metric").get<double>()));
    const auto resumed = runs.run(runs.recipe("resumed"), 1, runs.saved("apart", 4));
    for (const auto& result : resumed) CHECK(result.text.starts_with(kEndedWell));
    check_same(runs.tensors("apart", 8), runs.tensors("resumed", 8));
  }
}

TEST_CASE("without one that is killed the others are saved, and a resume goes on with all") {
  const MeetingRuns runs({R"(sync={"name": "diloco", "steps": 4, "fragments": 2})"});
  ::setenv("SCALETRAIN_FAULT", "kill@7,2", 1);
  const auto results = runs.run(runs.recipe("run"));
  ::unsetenv("SCALETRAIN_FAULT");
  CHECK(results[0].text == kEndedWell);
  CHECK(results[1].text == kEndedWell);
  CHECK(results[2].status == 128 + SIGKILL);
  CHECK(runs.state("run", 4).value("lost_positions", nlohmann::json()).empty());
  // Of its steps behind the sixth, two samples each.
  const auto lost = runs.state("run", 8).at("lost_positions");
  std::int64_t count = 0;
  for (const auto& range : lost) {
    CHECK(range[3] == 6);
    CHECK(range[4] == 4);
    count += (range[2].get<std::int64_t>() - range[1].get<std::int64_t>()) / 6 *
             range[5].get<std::int64_t>();
  }
  CHECK(count == 2 * 2);
  // The lost one's place has rank 0's.
  const format::StoredTensors ranks(runs.saved("run", 8) / "ranks.safetensors");
  int others = 0;
  for (const format::TensorInfo& info : ranks.tensors()) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(info.end - info.begin));
    ranks.read(info, bytes);
    const std::size_t row = bytes.size() / 3;
    CHECK(std::equal(bytes.begin(), bytes.begin() + row, bytes.begin() + 2 * row));
    if (!std::equal(bytes.begin(), bytes.begin() + row, bytes.begin() + row)) ++others;
  }
  CHECK(others > 0);
  const auto resumed = runs.run(runs.recipe("resumed", {"steps=12"}), 1, runs.saved("run", 8));
  for (const auto& result : resumed) CHECK(result.text.starts_with("code 0 after step 12"));
  CHECK(runs.state("resumed", 12).at("lost_positions") == lost);
}

TEST_CASE("of replicas that meet each has its own loss scale, which a save keeps") {
  const MeetingRuns runs(
      {R"(precision={"name": "fp16", "init_scale": 1e6, "growth_interval": 2})"});
  for (const auto& result : runs.run(runs.recipe("apart"))) CHECK(result.text == kEndedWell);
  runs.run(runs.recipe("together"), 2);
  const auto scales = [&](const std::string& output) {
    std::string names;
    const format::StoredTensors ranks(runs.saved(output, 8) / "ranks.safetensors");
    for (const format::TensorInfo& info : ranks.tensors()) {
      if (info.name.starts_with("scaler/")) names += info.name + " ";
    }
    return names;
  };
  CHECK(scales("apart") == "scaler/growth_tracker scaler/scale ");
  CHECK(scales("together").empty());  // they have one
  const auto resumed = runs.run(runs.recipe("resumed"), 1, runs.saved("apart", 4));
  for (const auto& result : resumed) CHECK(result.text.starts_with(kEndedWell));
  check_same(runs.tensors("apart", 8), runs.tensors("resumed", 8));
}

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

TEST_CASE("where one hears of a stop all exchange at one step, and that is saved") {
  for (const int who : {0, 1}) {
    CAPTURE(who);
    const MeetingRuns runs({R"(sync={"name": "diloco", "steps": 1000})", "steps=100000",
                            R"(validate.every={"steps": 100000})",
                            R"(checkpoint={"every": {"steps": 100000}})"});
    const auto results = runs.run(runs.recipe("run"), 1, {}, [&](int rank) {
      core::install_stop_handlers();
      if (rank == who) std::raise(SIGTERM);
    });
    const fs::path newest = fs::read_symlink(runs.saved("run", 0).parent_path() / "latest");
    std::ifstream file(runs.saved("run", 0).parent_path() / newest / "state.json");
    const auto state = nlohmann::json::parse(file);
    const auto step = state.at("step").get<std::int64_t>();
    CHECK(step >= 1);
    CHECK(state.value("lost_positions", nlohmann::json()).empty());
    for (const auto& result : results) {
      CHECK(result.text == fmt::format("code 75 after step {}", step));
    }
    const auto resumed = runs.run(runs.recipe("resumed", {fmt::format("steps={}", step + 2)}), 1,
                                  runs.saved("run", step));
    for (const auto& result : resumed) {
      CHECK(result.text.starts_with(fmt::format("code 0 after step {}", step + 2)));
    }
  }
}

TEST_CASE("async replicas that wait for each other learn what periodic ones do") {
  const MeetingRuns runs({R"(optimizer={"name": "sgd", "lr": 0.05})", "steps=4"});
  const std::string wait = R"(sync={"name": "async", "steps": 4, "staleness": 0})";
  for (const auto& result : runs.run(runs.recipe("async", {wait}))) {
    CHECK(result.text == "code 0 after step 4");
  }
  runs.run(runs.recipe("periodic", {R"(sync={"name": "periodic", "steps": 4})"}));
  runs.run(runs.recipe("still", {wait, R"(optimizer={"name": "sgd", "lr": 1e-9})"}));
  const auto async = runs.weights("async", 4), periodic = runs.weights("periodic", 4),
             still = runs.weights("still", 4);
  REQUIRE(async.size() == periodic.size());
  double apart = 0, learned = 0;
  for (std::size_t i = 0; i < async.size(); ++i) {
    apart = std::max(apart, std::abs(static_cast<double>(async[i]) - periodic[i]));
    learned = std::max(learned, std::abs(static_cast<double>(async[i]) - still[i]));
  }
  CHECK(apart < 1e-6);
  CHECK(learned > 1e-3);
}

TEST_CASE("each replica leaves out by itself a step that it cannot take") {
  for (const int who : {0, 1}) {
    CAPTURE(who);
    ::setenv("SCALETRAIN_FAULT", fmt::format("nan@3,{}", who).c_str(), 1);
    const MeetingRuns runs;
    for (const auto& result : runs.run(runs.recipe("run"))) {
      CHECK(result.text.starts_with(kEndedWell));
    }
    ::unsetenv("SCALETRAIN_FAULT");
    CHECK(runs.state("run", 8).at("skipped_steps") == (who == 0 ? 1 : 0));  // rank 0 counts its own
  }
}

}  // namespace scaletrain::train
