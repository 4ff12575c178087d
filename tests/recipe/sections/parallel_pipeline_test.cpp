#include <doctest/doctest.h>

#include <fstream>

#include "lib/core/error.h"
#include "lib/recipe/load.h"
#include "lib/recipe/sections/parallel.h"
#include "tests/recipe/recipe_support.h"
#include "tests/temporary_folder.h"

namespace scaletrain::recipe {
namespace {

using Texts = std::vector<std::string>;

Parallel read(const Texts& overrides) {
  return parse_recipe(minimal_recipe(), "r.json", overrides).parallel;
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
  const Parallel parallel = read({"parallel.pipeline=4", "batch.accumulate=8"});
  CHECK(parallel.schedule == "1f1b");
  CHECK(parallel.balance == "parameters");
  CHECK(parallel.mesh().pipe == 4);
  CHECK(parallel.pipeline_shape(8).stages() == 4);
  for (const char* const name : {"1f1b", "gpipe", "interleaved", "zero_bubble"}) {
    const Parallel other = read({"parallel.pipeline=2", "batch.accumulate=2",
                                 std::string("parallel.schedule=") + name, "parallel.chunks=3"});
    CHECK(other.pipeline_kind() == *core::find_pipeline_kind(name));
    CHECK(other.pipeline_shape(2).stages() == (name == std::string("interleaved") ? 6 : 2));
  }
}

TEST_CASE("micro-batches that a schedule cannot take are refused with numbers that fit") {
  CHECK(error_of(minimal_recipe(), {"parallel.pipeline=4", "batch.accumulate=3"}) ==
        "--set batch.accumulate: 3 micro-batches of a step are fewer than the 4 "
        "ranks of the pipeline\n"
        "  use at least 4, better 4 times as many");
  CHECK(error_of(minimal_recipe(),
                 {"parallel.pipeline=4", "batch.accumulate=6", "parallel.schedule=interleaved"}) ==
        "--set batch.accumulate: 6 micro-batches of a step are no multiple of "
        "the 4 ranks of an interleaved pipeline\n"
        "  use 4 or 8, or another schedule");
  CHECK(error_of(minimal_recipe(), {"parallel.pipeline=2"}).find("1 micro-batches") !=
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

TEST_CASE("what a pipeline cannot have is refused") {
  CHECK(error_of(minimal_recipe(),
                 {"parallel.pipeline=2", "batch.per_device=auto", "batch.global=64"}) ==
        "--set batch.per_device: \"auto\" does not find what a pipeline's stages "
        "hold\n  use a number");
  CHECK(error_of(minimal_recipe(),
                 {"parallel.pipeline=2", "batch.accumulate=2", "recompute.budget_mb=9"}) ==
        "--set recompute.budget_mb: does not know how many micro-batches a "
        "pipeline's stage holds\n  say which units: \"all\", or \"every\"");
  CHECK(error_of(minimal_recipe(), {"parallel.pipeline=2", "batch.accumulate=2", "recompute=all",
                                    "parallel.schedule=zero_bubble"}) ==
        "--set recompute: a zero_bubble schedule keeps what gradients of weights need, "
        "and this throws it away\n  leave it out, or use \"schedule\": \"1f1b\"");
  CHECK(error_of(minimal_recipe(),
                 {"parallel.pipeline=2", "batch.accumulate=2", "checkpoint.writers=rank_0"})
            .find(R"(has only its part of the model, of "pipeline": 2)") != std::string::npos);
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
        "--set parallel.pipeline: torchscript is one unit, and a pipeline's "
        "stages are made of units\n  leave it out");
}

}  // namespace scaletrain::recipe
