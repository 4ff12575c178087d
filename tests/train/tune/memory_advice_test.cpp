#include "lib/train/tune/memory_advice.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "lib/recipe/load.h"
#include "lib/train/build/build.h"
#include "tests/train/run/run_support.h"

namespace scaletrain::train {
namespace {

using Lines = std::vector<std::string>;

constexpr StepMemory kMemory{.parameters = 40'000'000,
                             .optimizer = 80'000'000,
                             .gradients = 40'000'000,
                             .activations = 500'000'000,
                             .units = 10};

}  // namespace

TEST_CASE("what would need less is named with its numbers, the most first") {
  const testing::TinyRun tiny;
  const recipe::Recipe recipe =
      tiny.recipe({R"(optimizer={"name": "adamw", "lr": 0.1})", "batch.accumulate=3"});
  CHECK(memory_advice(recipe, {.per_device = 4, .accumulate = 3, .global = 12}, kMemory) ==
        Lines{R"(400.0 MB: "recompute": "all")",
              R"(250.0 MB: "batch": {"per_device": 2, "accumulate": 6})",
              R"(60.0 MB: "optimizer": {"name": "adamw_8bit", ...})"});
}

TEST_CASE("what a recipe has already, or could not have, is left out; a GPU may offload") {
  const testing::TinyRun tiny;
  const recipe::Recipe recipe =
      tiny.recipe({"recompute=all", R"(batch={"per_device": 3, "global": 12})"});
  const recipe::BatchPlan plan{.per_device = 3, .accumulate = 2, .global = 12};
  CHECK(memory_advice(recipe, plan, kMemory).empty());
  StepMemory on_device = kMemory;
  on_device.on_device = true;
  CHECK(memory_advice(recipe, plan, on_device) ==
        Lines{R"(250.0 MB: "offload": {"activations": true})",
              R"(80.0 MB: "offload": {"optimizer": true})"});
  CHECK(memory_advice(tiny.recipe({"recompute=all", R"(batch={"per_device": 2, "global": 12})"}),
                      {.per_device = 2, .accumulate = 3, .global = 12},
                      kMemory) == Lines{R"(250.0 MB: "batch": {"per_device": 1, "global": 12})"});
}

TEST_CASE("a language model's loss may take chunks") {
  const testing::TinyRun tiny;
  recipe::Recipe recipe = recipe::parse_recipe(
      R"({"model": {"name": "gpt2", "vocab_size": 50000, "positions": 64},
          "data": {"train": {"tokens": "a.bin"}, "context": 64}, "batch": {"per_device": 5},
          "optimizer": {"name": "lion_8bit", "lr": 0.1}, "steps": 1})",
      "r.json");
  // 5 x 64 tokens of 50,000 classes, two floats each, seven eighths of them.
  CHECK(memory_advice(recipe, {.per_device = 5, .accumulate = 1, .global = 5}, {.units = 2}) ==
        Lines{R"(112.0 MB: "loss": {"name": "cross_entropy", "chunk": 40})"});
}

TEST_CASE("recompute is not advised for a model with unknown unit costs") {
  const testing::TinyRun tiny;
  CHECK(memory_advice(tiny.recipe({"batch.per_device=3"}), {.per_device = 3}, {}).empty());
}

TEST_CASE("a run's memory is that of its tensors, and of what was measured") {
  const testing::TinyRun tiny;
  CHECK(testing::said_apart([&] {
          const auto run = build_run(tiny.recipe({R"(optimizer={"name": "adamw", "lr": 0.1})"}), {},
                                     std::nullopt, {});
          units::MemoryUse first;
          first.bytes.at(static_cast<std::size_t>(units::MemoryKind::kActivations)) = 77;
          const StepMemory memory = step_memory(*run, first);
          // 983 numbers, two averages of them and the count of steps.
          return fmt::format("{} {} {} {} {} {}", memory.parameters, memory.gradients,
                             memory.optimizer, memory.activations, memory.on_device, memory.units);
        }) == "3932 3932 7868 77 false 2");
}

TEST_CASE("megabytes have one decimal") { CHECK(megabytes(1'250'000) == "1.2 MB"); }

TEST_CASE("a step's memory is written by kind") {
  CHECK(memory_text(kMemory) ==
        "parameters 40.0 MB, gradients 40.0 MB, optimizer 80.0 MB, activations 500.0 MB");
  CHECK(memory_text({}).ends_with("activations not measured yet"));
}

}  // namespace scaletrain::train
