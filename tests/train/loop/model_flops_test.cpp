#include "lib/train/loop/model_flops.h"

#include <ATen/Parallel.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/dist/ranks.h"
#include "tests/train/run/run_support.h"

namespace scaletrain::train::model_flops_test {
namespace {

struct Layout {
  const char* name;
  std::vector<std::string> changes;  // as --set takes them
  int ranks = 1;
};

// The records of the training steps of a vit, trained in a layout.
std::vector<nlohmann::json> trained(const Layout& layout) {
  const testing::TinyRun tiny;
  std::vector<std::string> changes{
      R"(model={"name": "vit_tiny", "num_classes": 3, "patch_size": 2, "dim": 16, "depth": 4,
                "heads": 2})",
      R"(batch={"global": 8, "per_device": 4})", R"(log={"every": {"steps": 1}})"};
  changes.insert(changes.end(), layout.changes.begin(), layout.changes.end());
  const recipe::Recipe recipe = tiny.recipe(changes);
  for (const auto& rank :
       testing::run_ranks({.world_size = layout.ranks}, [&](const core::WorkerEnv& env) {
         at::set_num_threads(1);
         return testing::ended(recipe, std::nullopt, env);
       })) {
    REQUIRE_MESSAGE(rank.text == "code 0 after step 4", rank.text);
  }
  std::ifstream file(tiny.path("run") + "/metrics.jsonl");
  std::vector<nlohmann::json> records;
  for (std::string line; std::getline(file, line);) {
    auto record = nlohmann::json::parse(line);
    if (record.at("event") == "train") records.push_back(std::move(record));
  }
  REQUIRE(records.size() == 4);
  return records;
}

// FLOPs of a step of 8 images: 4 blocks of 17 tokens, a convolution and a head.
struct VitFlops {
  double forward, backward;
};

VitFlops vit_flops() {
  constexpr double kImages = 8, kTokens = 17, kDim = 16, kDepth = 4, kPatches = 16;
  const double rows = kImages * kTokens;
  const double dense = kDepth * 2 * rows * kDim * kDim * 12;  // qkv, projection, mlp: 3 + 1 + 8
  const double product = kDepth * 2 * kImages * kTokens * kTokens * kDim;  // of attention
  const double patches = 2 * kImages * kPatches * kDim * 3 * 2 * 2;
  const double head = 2 * kImages * kDim * 3;
  return {.forward = dense + 2 * product + patches + head,
          // The images need no gradient.
          .backward = 2 * dense + 5 * product + patches + 2 * head};
}

}  // namespace

TEST_CASE("a step has the same FLOPs in each layout, counted once, after the first step") {
  const VitFlops expected = vit_flops();
  const std::vector<Layout> layouts{
      {"one rank, two micro-batches", {}},
      {"data parallel", {}, 2},
      {"sharded", {R"(parallel={"shard": 2})"}, 2},
      {"pipeline", {R"(parallel={"pipeline": 2, "schedule": "zero_bubble"})"}, 2},
      {"PowerSGD, Muon",
       {R"(compress="powersgd")", R"(optimizer={"name": "muon", "lr": 0.01})"},
       2},
  };
  for (const Layout& layout : layouts) {
    CAPTURE(std::string(layout.name));
    const auto records = trained(layout);
    CHECK_FALSE(records[0].contains("step_flops"));
    for (std::size_t i = 1; i < records.size(); ++i) {
      CHECK(records[i].at("step_flops") == expected.forward + expected.backward);
      CHECK_FALSE(records[i].contains("recomputed_flops"));
      CHECK(records[i].at("tflops_per_s") > 0);
      CHECK_FALSE(records[i].contains("mfu"));  // the peak of a CPU is not known
    }
  }
}

TEST_CASE("FLOPs of activation checkpointing are apart") {
  const VitFlops expected = vit_flops();
  const auto records = trained({"recompute", {R"(recompute="all")"}});
  CHECK(records[3].at("step_flops") == expected.forward + expected.backward);
  CHECK(records[3].at("recomputed_flops") > 0.5 * expected.forward);
  CHECK(records[3].at("recomputed_flops") < expected.forward);
}

TEST_CASE("another batch or image size is counted anew") {
  const auto grown =
      trained({"ramp", {"batch.ramp={\"start\": 4, \"increment\": 4, \"samples\": 8}"}});
  const double whole = vit_flops().forward + vit_flops().backward;
  CHECK(grown[1].at("step_flops") == whole / 2);
  CHECK(grown[2].at("step_flops") == whole);
  CHECK(grown[3].at("step_flops") == whole);
}

}  // namespace scaletrain::train::model_flops_test
