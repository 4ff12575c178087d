#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>

#include "lib/core/error.h"
#include "lib/recipe/catalog/row_keys.h"
#include "lib/recipe/load.h"
#include "lib/recipe/sections/parallel/parallel.h"
#include "tests/recipe/recipe_support.h"
#include "tests/temporary_folder.h"

namespace scaletrain::recipe {
namespace {

using Texts = std::vector<std::string>;

// A model of so many units: the default has 3.
constexpr const char *kNineUnits = "model.layers=8", *kSixUnits = "model.layers=5";

Parallel read(const Texts& overrides) {
  return parse_recipe(minimal_recipe(), "r.json", overrides).parallel;
}

// Of a pipeline that is as much as the recipe says, with micro-batches enough.
std::string stages_error(Texts overrides, const CatalogPtr& catalog = built_in_catalog()) {
  overrides.emplace_back("batch.accumulate=61440");
  try {
    parse_recipe(minimal_recipe(), "r.json", overrides, catalog);
  } catch (const core::RecipeError& error) {
    return error.what();
  }
  return "no error";
}

// What check_micro_batches() says of so many micro-batches of 8 samples.
std::string refusal(const Parallel& parallel, const BatchPlan& batch) {
  try {
    check_micro_batches(parallel, batch);
  } catch (const core::RecipeError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("without a pipeline there is one stage, and any number of micro-batches is right") {
  const Parallel parallel = read({});
  CHECK(parallel.pipeline == 1);
  CHECK(parallel.mesh().pipe == 1);
  CHECK(refusal(parallel, {.per_device = 8, .accumulate = 1, .global = 8}).empty());
}

TEST_CASE("a pipeline has a schedule, chunks where that is interleaved, and a balance") {
  const Parallel parallel = read({"parallel.pipeline=4", "batch.accumulate=8", kNineUnits});
  CHECK(parallel.schedule == "1f1b");
  CHECK(parallel.balance == "parameters");
  CHECK(parallel.mesh().pipe == 4);
  CHECK(parallel.pipeline_shape(8).stages() == 4);
  for (const char* const name : {"1f1b", "gpipe", "interleaved", "zero_bubble"}) {
    const Parallel other = read({kSixUnits, "parallel.pipeline=2", "batch.accumulate=2",
                                 std::string("parallel.schedule=") + name, "parallel.chunks=3"});
    CHECK(other.pipeline_kind() == *core::find_pipeline_kind(name));
    CHECK(other.pipeline_shape(2).stages() == (name == std::string("interleaved") ? 6 : 2));
  }
}

TEST_CASE("micro-batches that a schedule cannot take are refused with numbers that fit") {
  CHECK(error_of(minimal_recipe(), {"parallel.pipeline=4", "batch.accumulate=3", kNineUnits}) ==
        "--set batch.accumulate: 3 micro-batches of a step are fewer than the 4 "
        "ranks of the pipeline\n"
        "  use at least 4, better 4 times as many");
  CHECK(error_of(minimal_recipe(), {"parallel.pipeline=4", "batch.accumulate=6",
                                    "parallel.schedule=interleaved", kNineUnits}) ==
        "--set batch.accumulate: 6 micro-batches of a step are no multiple of "
        "the 4 ranks of an interleaved pipeline\n"
        "  use 4 or 8, or another schedule");
  CHECK(error_of(minimal_recipe(), {"parallel.pipeline=2"}).find("1 micro-batch") !=
        std::string::npos);
}

TEST_CASE("a global batch, and each size of one that grows, must give enough micro-batches") {
  Parallel parallel;
  parallel.pipeline = 4;
  CHECK(refusal(parallel, {.per_device = 4, .accumulate = 4, .global = 32}).empty());
  CHECK(refusal(parallel, {.per_device = 4, .accumulate = 2, .global = 16}) ==
        "/batch: 2 micro-batches of a step are fewer than the 4 ranks of the pipeline\n"
        "  use at least 4, better 4 times as many; one is 8 samples of the global batch");
  // From 2 micro-batches on.
  CHECK(refusal(parallel, {.per_device = 4,
                           .accumulate = 8,
                           .global = 64,
                           .ramp = core::BatchRamp{.start = 16, .increment = 16, .samples = 99}})
            .starts_with("/batch: 2 micro-batches"));
  parallel.schedule = "interleaved";
  CHECK(refusal(parallel, {.per_device = 4,
                           .accumulate = 8,
                           .global = 64,
                           .ramp = core::BatchRamp{.start = 32, .increment = 16, .samples = 99}})
            .starts_with("/batch: 6 micro-batches of a step are no multiple"));
}

TEST_CASE("more stages than the model has units are refused with numbers that fit") {
  CHECK(stages_error({"parallel.pipeline=3"}) == "no error");  // two hidden layers and the head
  CHECK(stages_error({"parallel.pipeline=4"}) ==
        "--set parallel.pipeline: 4 stages of a model that has 3 units\n  use at most 3 stages");
  CHECK(stages_error({"parallel.pipeline=4", "model.layers=3"}) == "no error");
  CHECK(stages_error({"model.name=resnet18", "parallel.pipeline=10"}) == "no error");
  CHECK(stages_error({"model.name=resnet18", "parallel.pipeline=11"}) ==
        "--set parallel.pipeline: 11 stages of a model that has 10 units\n"
        "  use at most 10 stages");
  // Chunks are nothing to another schedule.
  CHECK(stages_error({kSixUnits, "parallel.pipeline=6", "parallel.schedule=zero_bubble"}) ==
        "no error");
}

TEST_CASE("the chunks of an interleaved schedule are stages, and refused where fewer would fit") {
  const auto error = [](const char* ranks, const Texts& chunks) {
    Texts all{kNineUnits, "parallel.schedule=interleaved", ranks};
    all.insert(all.end(), chunks.begin(), chunks.end());
    return stages_error(all);
  };
  CHECK(error("parallel.pipeline=3", {"parallel.chunks=3"}) == "no error");
  CHECK(error("parallel.pipeline=4", {}) == "no error");
  CHECK(error("parallel.pipeline=3", {"parallel.chunks=4"}) ==
        "--set parallel.chunks: 12 stages, 4 chunks on each of 3 ranks, of a model that has 9 "
        "units\n  use at most 9 stages: at most 3 chunks");
  CHECK(error("parallel.pipeline=5", {"parallel.chunks=2"}) ==
        "--set parallel.chunks: 10 stages, 2 chunks on each of 5 ranks, of a model that has 9 "
        "units\n  use at most 9 stages: \"schedule\": \"1f1b\"");
  CHECK(error("parallel.pipeline=10", {}) ==
        "--set parallel.pipeline: 20 stages, 2 chunks on each of 10 ranks, of a model that has 9 "
        "units\n  use at most 9 stages");
  CHECK(error_of(minimal_recipe("\"parallel\": {\"pipeline\": 2, \"schedule\": "
                                "\"interleaved\"},\n\"batch\": {\"accumulate\": 2}")) ==
        "r.json:6: /parallel/chunks: 4 stages, 2 chunks on each of 2 ranks, of a model that has 3 "
        "units\n  use at most 3 stages: \"schedule\": \"1f1b\"");
}

TEST_CASE("a model of one's own is checked by what its row says of its units") {
  const auto layers = KEY_INT(layers, 4, from(1), "");
  const CatalogPtr catalog = catalog_with({{"silent", "", {}},
                                           {"one", "", {HAS_UNITS_FIXED(1)}},
                                           {"two", "", {HAS_UNITS_FIXED(2)}},
                                           {"more", "", {layers, HAS_UNITS(layers, 3)}}});
  const auto error = [&](const char* name, int ranks, const char* more = "seed=1") {
    return stages_error({fmt::format(R"(model={{"name": "{}", "num_classes": 3}})", name), more,
                         fmt::format("parallel.pipeline={}", ranks)},
                        catalog);
  };
  CHECK(error("silent", 4096) == "no error");  // what the worker finds
  CHECK(error("two", 2) == "no error");
  CHECK(error("more", 7) == "no error");
  CHECK(error("more", 64, "model.layers=9223372036854775807") == "no error");
  CHECK(error("one", 2) ==
        "--set parallel.pipeline: one has one unit, and each pipeline stage needs at least one\n"
        "  leave it out");
  CHECK(error("two", 3) ==
        "--set parallel.pipeline: 3 stages of a model that has 2 units\n  use at most 2 stages");
  CHECK(error("more", 8) ==
        "--set parallel.pipeline: 8 stages of a model that has 7 units\n  use at most 7 stages");
}

TEST_CASE("what a pipeline cannot have is refused") {
  CHECK(error_of(minimal_recipe(),
                 {"parallel.pipeline=2", "batch.per_device=auto", "batch.global=64"}) ==
        "--set batch.per_device: \"auto\" cannot measure the memory of pipeline stages\n  use a "
        "number");
  CHECK(error_of(minimal_recipe(),
                 {"parallel.pipeline=2", "batch.accumulate=2", "recompute.budget_mb=9"}) ==
        "--set recompute.budget_mb: does not know how many micro-batches a pipeline stage stores\n "
        " name the units: \"all\", or \"every\"");
  CHECK(error_of(minimal_recipe(), {"parallel.pipeline=2", "batch.accumulate=2", "recompute=all",
                                    "parallel.schedule=zero_bubble"}) ==
        "--set recompute: a zero_bubble schedule keeps activations for weight gradients, and "
        "recompute frees them\n  leave it out, or use \"schedule\": \"1f1b\"");
  CHECK(error_of(minimal_recipe(),
                 {"parallel.pipeline=2", "batch.accumulate=2", "checkpoint.writers=rank_0"})
            .find(R"(has only a part of the model with "pipeline": 2)") != std::string::npos);
  for (const char* const level : {"optimizer", "gradients", "parameters"}) {
    CHECK(error_of(minimal_recipe(), {"parallel.pipeline=2", "parallel.shard=2",
                                      std::string("parallel.shard_level=") + level,
                                      "parallel.schedule=zero_bubble", "batch.accumulate=2"}) ==
          "no error");
  }
  const test::TemporaryFolder folder;
  std::ofstream(folder.file("m.pt")) << "x";
  CHECK(error_of(minimal_recipe(), {R"(model={"name": "torchscript", "num_classes": 3, "file": ")" +
                                        folder.file("m.pt") + "\"}",
                                    "parallel.pipeline=2", "batch.accumulate=2"}) ==
        "--set parallel.pipeline: torchscript has one unit, and each pipeline stage needs at least "
        "one\n  leave it out");
}

}  // namespace scaletrain::recipe
