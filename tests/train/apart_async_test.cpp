// Replicas of several ranks of async: layout x what becomes of them.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <csignal>

#include "lib/core/process/signals.h"
#include "tests/long_form.h"
#include "tests/train/apart_bits.h"
#include "tests/train/apart_pairs.h"

namespace scaletrain::train {
namespace {

using testing::Changes;
using testing::check_all_end;
using testing::check_one_is_lost;
using testing::every_second;
using testing::kRareEnd;
using testing::model_of;
using testing::pairs;
using testing::RareLayout;
using testing::RareRuns;
using testing::SavedRuns;

TEST_CASE("async replicas of several ranks that wait for each other learn what periodic ones do") {
  const std::string wait = R"(sync={"name": "async", "steps": 4, "staleness": 0})";
  for (const RareLayout& layout : every_second(pairs(), 0)) {
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
  for (const RareLayout& layout : every_second(pairs(), 1)) {
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

}  // namespace
}  // namespace scaletrain::train
