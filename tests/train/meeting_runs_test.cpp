// Decoupled replicas of DiLoCo and async (lib/local_sgd/replicas.h) in whole runs.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/core/process/signals.h"
#include "lib/format/checkpoint/stored_tensors.h"
#include "tests/long_form.h"
#include "tests/train/saved_runs_support.h"

namespace scaletrain::train {
namespace {

namespace fs = std::filesystem;
using Changes = std::vector<std::string>;

// Of three replicas, that exchange behind every 4 of 8 steps and are saved there.
class MeetingRuns : public testing::SavedRuns {
 public:
  explicit MeetingRuns(const Changes& changes = {}) : SavedRuns(all_changes(changes)) {}

 private:
  static Changes all_changes(const Changes& changes) {
    Changes all{"steps=8",
                R"(batch={"per_device": 2})",
                R"(optimizer={"name": "adamw", "lr": 0.01})",
                R"(sync={"name": "diloco", "steps": 4})",
                R"(validate.every={"steps": 4})",
                R"(checkpoint={"every": {"steps": 4}, "keep_last": 9})",
                R"(log.every={"steps": 1})"};
    all.insert(all.end(), changes.begin(), changes.end());
    return all;
  }
};

const Changes kWithVotes{R"(early_stopping={"patience": 99})"};  // by collectives
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

TEST_CASE("decoupled DiLoCo replicas save the same bits as coupled ones") {
  std::vector<Changes> cases{
      {R"(sync={"name": "diloco", "steps": 4, "fragments": 2})",
       R"(optimizer={"name": "sgd", "lr": 0.05})", "clip.norm=0.5"},
      {R"(model={"name": "mobilenet_v3_small", "num_classes": 3})",
       R"(sync={"name": "diloco", "steps": 2, "fragments": 2})"},
  };
  if (testing::is_long_form()) cases.emplace_back();  // without fragments
  for (const Changes& changes : cases) {
    const std::string what = changes.empty() ? "plain" : changes.front();
    CAPTURE(what);
    const MeetingRuns runs(changes);
    for (const auto& result : runs.run(runs.recipe("apart"))) CHECK(result.text == kEndedWell);
    for (const auto& result : runs.run(runs.recipe("together", kWithVotes))) {
      CHECK(result.text == kEndedWell);
    }
    check_same(runs.bytes("apart", 4), runs.bytes("together", 4));
    check_same(runs.bytes("apart", 8), runs.bytes("together", 8));
    CHECK(runs.state("apart", 8).at("best_metric").get<double>() ==
          doctest::Approx(runs.state("together", 8).at("best_metric").get<double>()));
    const auto resumed = runs.run(runs.recipe("resumed"), {}, runs.saved("apart", 4));
    for (const auto& result : resumed) CHECK(result.text.starts_with(kEndedWell));
    check_same(runs.bytes("apart", 8), runs.bytes("resumed", 8));
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
  const auto resumed = runs.run(runs.recipe("resumed", {"steps=12"}), {}, runs.saved("run", 8));
  for (const auto& result : resumed) CHECK(result.text.starts_with("code 0 after step 12"));
  CHECK(runs.state("resumed", 12).at("lost_positions") == lost);
}

TEST_CASE("coupled local SGD replicas have their own loss scales, which a checkpoint keeps") {
  const MeetingRuns runs(
      {R"(precision={"name": "fp16", "init_scale": 1e6, "growth_interval": 2})"});
  for (const auto& result : runs.run(runs.recipe("apart"))) CHECK(result.text == kEndedWell);
  runs.run(runs.recipe("together", kWithVotes));
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
  const auto resumed = runs.run(runs.recipe("resumed"), {}, runs.saved("apart", 4));
  for (const auto& result : resumed) CHECK(result.text.starts_with(kEndedWell));
  check_same(runs.bytes("apart", 8), runs.bytes("resumed", 8));
}

TEST_CASE("a stop on one rank makes all coupled replicas synchronize at one step, which is saved") {
  // Rank 0 is in apart_layouts_test.cpp.
  for (const int who : testing::is_long_form() ? std::vector<int>{0, 1} : std::vector<int>{1}) {
    CAPTURE(who);
    const MeetingRuns runs({R"(sync={"name": "diloco", "steps": 1000})", "steps=100000",
                            R"(validate.every={"steps": 100000})",
                            R"(checkpoint={"every": {"steps": 100000}})"});
    const auto results = runs.run(runs.recipe("run"), {.before = [&](int rank) {
                                    core::install_stop_handlers();
                                    if (rank == who) std::raise(SIGTERM);
                                  }});
    const fs::path newest = fs::read_symlink(runs.saved("run", 0).parent_path() / "latest");
    std::ifstream file(runs.saved("run", 0).parent_path() / newest / "state.json");
    const auto state = nlohmann::json::parse(file);
    const auto step = state.at("step").get<std::int64_t>();
    CHECK(step >= 1);
    CHECK(state.value("lost_positions", nlohmann::json()).empty());
    for (const auto& result : results) {
      CHECK(result.text == fmt::format("code 75 after step {}", step));
    }
    const auto resumed = runs.run(runs.recipe("resumed", {fmt::format("steps={}", step + 2)}), {},
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
  const auto weights = [&](const char* output) {
    return runs.tensors(output, 4, "model.safetensors");
  };
  CHECK(testing::tensors_apart(weights("async"), weights("periodic"), 1e-5) == "");
  CHECK(testing::tensors_apart(weights("async"), weights("still"), 1e-3) != "");
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
