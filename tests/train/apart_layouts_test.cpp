// Replicas of several ranks that are apart (lib/recipe/apart.h): layout x what becomes of them.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "lib/core/process/signals.h"
#include "tests/long_form.h"
#include "tests/train/apart_bits.h"
#include "tests/train/apart_pairs.h"

namespace scaletrain::train {
namespace {

namespace fs = std::filesystem;
using testing::check_all_end;
using testing::check_bits;
using testing::check_one_is_lost;
using testing::every_second;
using testing::kApartSync;
using testing::kRareCut;
using testing::layouts_named;
using testing::model_of;
using testing::pairs;
using testing::rare_layouts;
using testing::RareLayout;
using testing::RareRuns;
using testing::SavedRuns;

TEST_CASE("replicas of several ranks save the bits of collectives, and so does a resume") {
  const RareRuns runs({kApartSync, R"(optimizer={"name": "adamw", "lr": 0.01})", "clip.norm=0.5"});
  for (const RareLayout& layout :
       layouts_named(rare_layouts(), {"shard, gradients", "pipeline", "shard x pipeline"})) {
    check_bits(runs, layout);
  }
  check_bits(runs, {"context", R"({"context": 2})"});
  const RareRuns rounded({kApartSync, "compress=bf16"});
  check_bits(rounded, {"shard", R"({"shard": 2})", 4, 2});
}

TEST_CASE("statistics of each data-parallel rank are those of collectives") {
  const RareRuns runs({kApartSync, R"(optimizer={"name": "sgd", "lr": 0.05})"},
                      testing::kRareImages);
  const std::vector<RareLayout> layouts{{"shard", R"({"shard": 2})", 4, 2},
                                        {"pipeline", R"({"pipeline": 2})"}};
  for (const RareLayout& layout : every_second(layouts, 0)) check_bits(runs, layout);
}

TEST_CASE("with one of its ranks a replica is lost, and the others are saved and go on") {
  for (const RareLayout& layout : every_second(pairs(), 0)) {
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

TEST_CASE(
    "a stop on one rank makes all decoupled replicas synchronize at one step, which is saved") {
  for (const RareLayout& layout : every_second(pairs(), 0)) {
    const bool is_shard = layout.name == std::string("shard");
    // The first two are of rank 0's replica, the last of another one's last stage.
    for (const int who : is_shard ? std::vector<int>{0, 1} : std::vector<int>{4}) {
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

}  // namespace
}  // namespace scaletrain::train
