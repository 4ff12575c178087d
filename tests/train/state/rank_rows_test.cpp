// Replicas of several ranks that train alone and exchange weights now and then, against replicas of
// one rank each: layout x sync, a line each; and what each of them has of its own in a checkpoint.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "lib/train/state/rank_state.h"
#include "tests/long_form.h"
#include "tests/train/rare_runs.h"

namespace scaletrain::train {
namespace {

using Changes = testing::Changes;
using testing::every_nth;
using testing::every_third;
using testing::is_long_form;
using testing::kRareDiloco;
using testing::kRareEnd;
using testing::kRareMost;
using testing::kRarePeriodic;
using testing::kRareSingle;
using testing::layouts_named;
using testing::rare_layouts;
using testing::RareLayout;
using testing::RareRuns;
using testing::tensors_apart;

}  // namespace

TEST_CASE("replicas of several ranks train, and go on, as replicas of one rank") {
  for (const Changes& sync : {kRarePeriodic, kRareDiloco}) {
    CAPTURE(sync.front());
    const RareRuns runs(sync);
    REQUIRE(runs.run("single", kRareSingle) == kRareEnd);
    // On the other layouts replicas train and go on in "ranks ... round what their replica has
    // learned" and in apart_layouts_test.cpp.
    const std::set<std::string> names =
        sync == kRareDiloco
            ? std::set<std::string>{"shard, gradients", "sequence", "tensor x pipeline"}
            : std::set<std::string>{"shard, optimizer", "tensor", "pipeline, zero_bubble"};
    for (const RareLayout& layout : layouts_named(rare_layouts(), names)) {
      CAPTURE(std::string(layout.name));
      CHECK(runs.trains_and_goes_on_as("single", layout) == "");
    }
  }
}

TEST_CASE("each level of shard has the same bits in replicas that train alone") {
  Changes changes = kRareDiloco;
  changes.emplace_back("batch.global=8");  // no sums of micro-batches
  const RareRuns runs(changes);
  for (const char* const level : {"optimizer", "gradients", "parameters"}) {
    const std::string parallel = fmt::format(R"({{"shard": 2, "shard_level": "{}"}})", level);
    REQUIRE(runs.run(level, {level, parallel.c_str(), 4, 2}) == kRareEnd);
    CHECK(runs.apart(level, "optimizer", 0) == "");
  }
}

TEST_CASE("replicas keep their own state on ranks that hold the model in another way") {
  const RareRuns runs(kRareDiloco);
  const RareLayout cut{"cut", R"({"shard": 2, "tensor": 2})", 8, 2};
  REQUIRE(runs.run("single", kRareSingle) == kRareEnd);
  REQUIRE(runs.run("cut", cut) == kRareEnd);
  CHECK(runs.goes_on_as("single", "single", cut) == "");
  CHECK(runs.goes_on_as("single", "single", {"stages", R"({"pipeline": 2})"}) == "");
  CHECK(runs.goes_on_as("single", "cut", kRareSingle) == "");
  CHECK(runs.goes_on_as("single", "cut", {"stages", R"({"pipeline": 2})"}) == "");
  CHECK(runs.run("more", {"more", R"({"shard": 2})", 8, 2}, runs.cut("cut"))
            .find("all replicas continue with the optimizer state of the first one: the "
                  "checkpoint is of another mesh") != std::string::npos);
}

TEST_CASE("the owner of a whole tensor keeps its replica's state of it") {
  Changes changes = kRareDiloco;
  changes.emplace_back(R"(optimizer={"name": "lars", "lr": 0.1})");
  const RareRuns runs(changes);
  const RareLayout shard{"shard", R"({"shard": 2})", 4, 2};
  REQUIRE(runs.run("single", kRareSingle) == kRareEnd);
  CHECK(runs.trains_and_goes_on_as("single", shard) == "");
}

TEST_CASE("ranks that hold a model together compress what replicas exchange") {
  // Sums of fp32 differ in their last bits, and then a rounding may fall the other way. What two
  // stages share, and what context ranks add up, is rounded on each of them.
  constexpr double kOtherRoundings = 1e-2;
  const RareRuns plain({"clip.norm=0.5"});
  REQUIRE(plain.run("single", kRareSingle) == kRareEnd);
  for (const char* const name : {"bf16", "fp16"}) {
    CAPTURE(std::string(name));
    const RareRuns runs({std::string("compress=") + name, "clip.norm=0.5"});
    REQUIRE(runs.run("single", kRareSingle) == kRareEnd);
    const checkpoint::Tensors expected = runs.tensors("single", "model.safetensors");
    const bool is_bf16 = name == std::string("bf16");
    const double one_rounding = is_bf16 ? 2e-3 : 3e-4;
    for (const RareLayout& layout : every_nth(5, rare_layouts(), is_bf16 ? 0 : 3)) {
      const std::string where = layout.name;
      CAPTURE(where);
      REQUIRE(runs.run(where, layout) == kRareEnd);
      const checkpoint::Tensors found = runs.tensors(where, "model.safetensors");
      const bool rounds_alike =
          where.find("pipeline") == std::string::npos && where.find("context") == std::string::npos;
      CHECK(tensors_apart(found, expected, rounds_alike ? one_rounding : kOtherRoundings) == "");
      CHECK(tensors_apart(found, plain.tensors("single", "model.safetensors"), 1e-6) != "");
    }
  }
}

TEST_CASE("ranks that hold a model together round what their replica has learned") {
  constexpr double kOneRounding = 1e-3;  // which may fall another way
  Changes changes = kRareDiloco;
  const RareRuns plain(changes);
  REQUIRE(plain.run("single", kRareSingle) == kRareEnd);
  changes.emplace_back("compress=bf16");
  const RareRuns runs(changes);
  REQUIRE(runs.run("single", kRareSingle) == kRareEnd);
  CHECK(tensors_apart(runs.tensors("single", "model.safetensors"),
                      plain.tensors("single", "model.safetensors"), 1e-6) != "");
  for (const RareLayout& layout : every_third(rare_layouts(), 2)) {
    const std::string name = layout.name, second = name + ", second";
    CAPTURE(name);
    REQUIRE(runs.run(name, layout) == kRareEnd);
    CHECK(runs.apart(name, "single", kOneRounding) == "");
    REQUIRE(runs.run(second, layout, runs.cut(name)) == kRareEnd);
    CHECK(runs.bytes(second) == runs.bytes(name));
  }
}

namespace {

// As `recipe check` has it.
bool goes_with(const std::string& compress, const std::string& layout) {
  const auto has = [&](const char* axis) { return layout.find(axis) != std::string::npos; };
  if (has("shard") && has("pipeline")) return false;
  return compress != "powersgd" || !(has("shard") || has("tensor") || has("sequence"));
}

}  // namespace

TEST_CASE("what ranks that hold a model together have not sent goes on with them") {
  const RareRuns plain({});
  REQUIRE(plain.run("single", kRareSingle) == kRareEnd);
  const std::vector<double> expected = plain.course("single").losses;
  const std::vector<std::string> names{"powersgd", "onebit", "int8"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string& name = names[i];
    CAPTURE(name);
    const RareRuns runs({"compress=" + name});
    const std::vector<RareLayout> layouts = every_third(rare_layouts(), i);
    for (const RareLayout& layout : layouts) {
      if (!goes_with(name, layout.name)) continue;
      // Of those with two axes the short form has one.
      const bool has_two_axes = layout.ranks > 4;
      if (has_two_axes && layout.name != std::string("shard x tensor") && !is_long_form()) continue;
      CAPTURE(std::string(layout.name));
      REQUIRE(runs.run(layout.name, layout) == kRareEnd);
      CHECK(testing::largest_apart(runs.course(layout.name).losses, expected) < 0.05);
      if (name == "int8" && layout.name == std::string("shard, parameters")) {
        REQUIRE(plain.run("plain", layout) == kRareEnd);
        const std::string ended = runs.run("from plain", layout, plain.cut("plain"));
        CHECK(ended.find("of gradient compression starts from zero: ") != std::string::npos);
      }
      const std::string second = std::string(layout.name) + ", second";
      REQUIRE(runs.run(second, layout, runs.cut(layout.name)) == kRareEnd);
      CHECK_FALSE(runs.tensors(second, "ranks.safetensors").empty());
      const bool is_same = runs.bytes(second) == runs.bytes(layout.name);
      CHECK(is_same);
    }
    if (!goes_with(name, "shard")) continue;
    const RareLayout other{"other", R"({"shard": 4})", 4, 4};
    CHECK(runs.run("other", other, runs.cut(layouts.front().name)).starts_with(kRareEnd));
  }
}

}  // namespace scaletrain::train
