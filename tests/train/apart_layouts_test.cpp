// Replicas of several ranks that are apart (lib/recipe/apart.h): layout x what becomes of them.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "lib/core/signals.h"
#include "tests/train/apart_bits.h"

namespace scaletrain::train {
namespace {

namespace fs = std::filesystem;
using testing::Changes;
using testing::check_all_end;
using testing::check_bits;
using testing::kApartSync;
using testing::kRareCut;
using testing::kRareEnd;
using testing::rare_layouts;
using testing::RareLayout;
using testing::RareRuns;
using testing::SavedRuns;

// Three replicas of two ranks.
const std::vector<RareLayout>& pairs() {
  static const std::vector<RareLayout> all{{"shard", R"({"shard": 2})", 6, 2, 3},
                                           {"tensor", R"({"tensor": 2})", 6, 1, 3},
                                           {"pipeline", R"({"pipeline": 2})", 6, 1, 3},
                                           {"expert", R"({"expert": 2})", 6, 2, 3}};
  return all;
}

const char* model_of(const RareLayout& layout) {
  return layout.name == std::string("expert") ? testing::kRareMixture : testing::kRareDecoder;
}

// What runs of pairs end with where the second rank of replica 1 is killed at `step`, whose fellow
// has lost a peer.
void check_one_is_lost(const recipe::Recipe& recipe, const RareLayout& layout, int step) {
  const bool is_pipeline = layout.name == std::string("pipeline");
  const int killed = is_pipeline ? 4 : 3, fellow = is_pipeline ? 1 : 2;
  ::setenv("SCALETRAIN_FAULT", fmt::format("kill@{},{}", step, killed).c_str(), 1);
  const auto results = SavedRuns::run(recipe, {.ranks = layout.ranks});
  ::unsetenv("SCALETRAIN_FAULT");
  for (int rank = 0; rank < layout.ranks; ++rank) {
    CAPTURE(rank);
    const auto& result = results[static_cast<std::size_t>(rank)];
    if (rank == killed) {
      CHECK(result.status == 128 + SIGKILL);
    } else if (rank == fellow) {
      CHECK(result.status == 75);
    } else {
      CHECK(result.text == kRareEnd);
    }
  }
}

}  // namespace

TEST_CASE("replicas of several ranks save the bits of collectives, and so does a resume") {
  const RareRuns runs({kApartSync, R"(optimizer={"name": "adamw", "lr": 0.01})", "clip.norm=0.5"});
  for (const RareLayout& layout : rare_layouts()) check_bits(runs, layout);
  check_bits(runs, {"context", R"({"context": 2})"});
}

TEST_CASE("statistics of each data coordinate are those of collectives") {
  const RareRuns runs({kApartSync, R"(optimizer={"name": "sgd", "lr": 0.05})"},
                      testing::kRareImages);
  check_bits(runs, {"shard", R"({"shard": 2})", 4, 2});
  check_bits(runs, {"pipeline", R"({"pipeline": 2})"});
}

TEST_CASE("with one of its ranks a replica is lost, and the others are saved and go on") {
  for (const RareLayout& layout : pairs()) {
    const std::string name = layout.name;
    CAPTURE(name);
    const RareRuns runs({kApartSync}, model_of(layout));
    check_one_is_lost(runs.recipe("run", layout), layout, 7);
    CHECK(runs.state("run", kRareCut).value("lost_positions", nlohmann::json()).empty());
    // Of its steps behind the sixth, where the first fragment was exchanged.
    std::int64_t samples = 0;
    const auto lost = runs.state("run", 8).at("lost_positions");
    for (const auto& range : lost) {
      CHECK(range[3] == 12);
      CHECK(range[4] == 4);
      CHECK(range[5] == 4);
      samples += (range[2].get<std::int64_t>() - range[1].get<std::int64_t>()) / 12 * 4;
    }
    CHECK(samples == 2 * 8);  // two steps of 8 samples
    // In the place of the lost one stands rank 0's state.
    int differing = 0;
    for (const auto& [tensor, all] : runs.tensors("run", "ranks.safetensors")) {
      CAPTURE(tensor);
      CHECK(at::equal(all[1], all[0]));
      if (!at::equal(all[2], all[0])) ++differing;
    }
    CHECK(differing > 0);
    const auto longer = runs.recipe("more", layout, {"steps=12"});
    check_all_end(SavedRuns::run(longer, {.ranks = layout.ranks}, runs.saved("run", 8)),
                  "code 0 after step 12");
    CHECK(runs.state("more", 12).at("lost_positions") == lost);
  }
}

TEST_CASE("where one rank hears of a stop all replicas exchange at one step, and that is saved") {
  for (const RareLayout& layout : pairs()) {
    for (const int who : {0, 1, 4}) {
      CAPTURE(std::string(layout.name));
      CAPTURE(who);
      const RareRuns runs(
          {R"(sync={"name": "diloco", "steps": 1000})", R"(validate.every={"steps": 100000})",
           R"(checkpoint={"every": {"steps": 100000}})"},
          model_of(layout));
      const auto asked = runs.recipe("run", layout, {"steps=100000"});
      const auto results = SavedRuns::run(asked, {.ranks = layout.ranks, .before = [&](int rank) {
                                                    core::install_stop_handlers();
                                                    if (rank == who) std::raise(SIGTERM);
                                                  }});
      const fs::path newest = fs::read_symlink(runs.saved("run", 0).parent_path() / "latest");
      const int step = std::stoi(newest.filename().string().substr(5));
      CHECK(step >= 1);
      check_all_end(results, fmt::format("code 75 after step {}", step));
      CHECK(runs.state("run", step).value("lost_positions", nlohmann::json()).empty());
      const auto longer = runs.recipe("resumed", layout, {fmt::format("steps={}", step + 2)});
      check_all_end(SavedRuns::run(longer, {.ranks = layout.ranks}, runs.saved("run", step)),
                    fmt::format("code 0 after step {}", step + 2));
    }
  }
}

TEST_CASE("async replicas of several ranks that wait for each other learn what periodic ones do") {
  const std::string wait = R"(sync={"name": "async", "steps": 4, "staleness": 0})";
  for (const RareLayout& layout : pairs()) {
    const std::string name = layout.name;
    CAPTURE(name);
    Changes changes{R"(optimizer={"name": "sgd", "lr": 0.05})"};
    if (name == "expert") changes.emplace_back("model.router_bias_rate=0");  // of all, there
    const RareRuns runs(changes, model_of(layout));
    check_all_end(SavedRuns::run(runs.recipe(name, layout, {wait}), {.ranks = layout.ranks}),
                  kRareEnd);
    const std::string periodic = name + ", periodic";
    check_all_end(
        SavedRuns::run(runs.recipe(periodic, layout, {R"(sync={"name": "periodic", "steps": 4})"}),
                       {.ranks = layout.ranks}),
        kRareEnd);
    CHECK(testing::tensors_apart(runs.tensors(name, "model.safetensors"),
                                 runs.tensors(periodic, "model.safetensors"), 1e-5) == "");
    const auto longer = runs.recipe(name + ", longer", layout, {wait, "steps=12"});
    check_all_end(SavedRuns::run(longer, {.ranks = layout.ranks}, runs.saved(name, 8)),
                  "code 0 after step 12");
  }
}

TEST_CASE("async replicas of several ranks go on without one, and stop together") {
  for (const RareLayout& layout : pairs()) {
    const std::string name = layout.name;
    CAPTURE(name);
    const RareRuns runs({R"(sync={"name": "async", "steps": 2, "staleness": 1})"},
                        model_of(layout));
    check_one_is_lost(runs.recipe(name, layout), layout, 5);
    CHECK_FALSE(runs.state(name, 8).at("lost_positions").empty());
    if (name == "expert") {  // rank 0's replica's router stands for all
      const auto buffers = runs.tensors(name, "buffers.safetensors");
      CHECK_FALSE(buffers.empty());
      for (const auto& [buffer, all] : buffers) CHECK(all.size(0) == layout.ranks);
      const auto longer = runs.recipe(name + ", longer", layout, {"steps=12"});
      check_all_end(SavedRuns::run(longer, {.ranks = layout.ranks}, runs.saved(name, 8)),
                    "code 0 after step 12");
    }
    if (name == "pipeline") continue;  // rank 1 is of another replica, which leaves alone
    const std::string stopped = name + ", stopped";
    const auto asked = runs.recipe(stopped, layout, {"steps=100000"});
    const auto stops = SavedRuns::run(asked, {.ranks = layout.ranks, .before = [](int rank) {
                                                core::install_stop_handlers();
                                                if (rank == 1) std::raise(SIGTERM);
                                              }});
    for (const auto& result : stops) CHECK(result.text.starts_with("code 75 after step "));
  }
}

}  // namespace scaletrain::train
