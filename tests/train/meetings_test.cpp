#include "lib/train/meetings.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <span>

#include "lib/core/log.h"
#include "lib/core/signals.h"
#include "lib/format/checkpoint_folder.h"
#include "lib/format/stored_tensors.h"
#include "tests/dist/ranks.h"
#include "tests/train/run_support.h"

namespace scaletrain::train {
namespace {

namespace fs = std::filesystem;
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
