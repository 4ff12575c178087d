// Replicas whose ranks share the experts of a mixture, against replicas of one rank that has them
// all: layout x sync, a line each; and what each of them has of its own in a checkpoint.
#include <ATen/ops/equal.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "lib/train/state/rank_state.h"
#include "tests/long_form.h"
#include "tests/train/apart_bits.h"

namespace scaletrain::train {
namespace {

using testing::check_bits;
using testing::every_third;
using testing::kApartSync;
using testing::kRareDiloco;
using testing::kRareEnd;
using testing::kRareMixture;
using testing::kRarePeriodic;
using testing::kRareSingle;
using testing::layouts_named;
using testing::rare_expert_layouts;
using testing::RareLayout;
using testing::RareRuns;
using testing::tensors_apart;

const RareLayout& kShared = rare_expert_layouts().front();

}  // namespace

TEST_CASE("replicas whose ranks share experts train, and go on, as replicas of one rank") {
  const RareRuns runs(kRareDiloco, kRareMixture);
  REQUIRE(runs.run("single", kRareSingle) == kRareEnd);
  for (const RareLayout& layout :
       layouts_named(rare_expert_layouts(), {"expert", "shard 2 of expert 4"})) {
    CAPTURE(std::string(layout.name));
    CHECK(runs.trains_and_goes_on_as("single", layout) == "");
  }
}

TEST_CASE("replicas that share experts balance them as ranks do that have them all") {
  testing::Changes changes = kRarePeriodic;
  changes.emplace_back("model.router_aux_loss=0.5");
  const RareRuns runs(changes, kRareMixture);
  REQUIRE(runs.run("shards", {"shards", R"({"shard": 2})", 4, 2}) == kRareEnd);
  CHECK(runs.trains_and_goes_on_as("shards", kShared) == "");
}

TEST_CASE("replicas keep their own state on ranks that share experts in another way") {
  const RareRuns runs(kRareDiloco, kRareMixture);
  REQUIRE(runs.run("single", kRareSingle) == kRareEnd);
  REQUIRE(runs.run("shared", kShared) == kRareEnd);
  CHECK(runs.goes_on_as("single", "single", kShared) == "");
  CHECK(runs.goes_on_as("single", "shared", kRareSingle) == "");
  CHECK(runs.goes_on_as("single", "shared", {"shards", R"({"shard": 2})", 4, 2}) == "");
  if (testing::is_long_form()) {
    const RareLayout tensor{"tensor", R"({"expert": 2, "tensor": 2})", 8, 2};
    CHECK(runs.goes_on_as("single", "shared", tensor) == "");
  }
  // One replica of two ranks has no state of its own.
  CHECK(
      runs.run("one", {"one", R"({"expert": 2})", 2, 2}, runs.cut("shared")).starts_with(kRareEnd));
  // Where they were four of one rank each, they are two of two.
  const RareLayout four{"four", "{}", 4};
  REQUIRE(runs.run("four", four) == kRareEnd);
  CHECK(runs.run("two", kShared, runs.cut("four"))
            .find("all replicas continue with the optimizer state of the first one: the "
                  "checkpoint is of another mesh") != std::string::npos);
}

// By collectives the tokens of all replicas would move a router's bias.
TEST_CASE("replicas that share experts save the bits of collectives, and so does a resume") {
  const RareRuns runs({kApartSync, R"(optimizer={"name": "adamw", "lr": 0.01})", "clip.norm=0.5",
                       "model.router_bias_rate=0", "model.router_aux_loss=0.5"},
                      testing::kRareMixture);
  for (const RareLayout& layout :
       layouts_named(rare_expert_layouts(), {"shard 2 of expert 2", "expert x pipeline"})) {
    check_bits(runs, layout);
  }
}

TEST_CASE("replicas that share experts balance them alone, as those that cut what they have") {
  const RareRuns runs({kApartSync}, testing::kRareMixture);
  REQUIRE(runs.run("shards", {"shards", R"({"shard": 2})", 4, 2}) == kRareEnd);
  CHECK(runs.trains_and_goes_on_as("shards", kShared) == "");
  // The bias of the router, of each replica its own.
  const auto buffers = runs.tensors("shards", "buffers.safetensors");
  CHECK(tensors_apart(runs.tensors(kShared.name, "buffers.safetensors"), buffers, 1e-6) == "");
  int differing = 0;
  for (const auto& [name, all] : buffers) {
    CHECK(at::equal(all[0], all[1]));
    if (!at::equal(all[0], all[2])) ++differing;
  }
  CHECK(differing > 0);
}

TEST_CASE("ranks that share experts compress what they add up") {
  const RareRuns plain({"clip.norm=0.5"}, kRareMixture);
  REQUIRE(plain.run("single", kRareSingle) == kRareEnd);
  const checkpoint::Tensors exact = plain.tensors("single", "model.safetensors");
  for (const char* const name : {"bf16", "fp16"}) {
    CAPTURE(std::string(name));
    const RareRuns runs({std::string("compress=") + name, "clip.norm=0.5"}, kRareMixture);
    const std::size_t first = name == std::string("bf16") ? 0 : 1;
    for (const RareLayout& layout : every_third(rare_expert_layouts(), first)) {
      CAPTURE(std::string(layout.name));
      REQUIRE(runs.run(layout.name, layout) == kRareEnd);
      const checkpoint::Tensors found = runs.tensors(layout.name, "model.safetensors");
      CHECK(tensors_apart(found, exact, 2e-2) == "");
      CHECK(tensors_apart(found, exact, 1e-6) != "");
    }
  }
}

}  // namespace scaletrain::train
