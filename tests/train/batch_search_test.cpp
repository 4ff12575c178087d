#include "lib/train/batch_search.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/train/build.h"
#include "lib/train/step_costs.h"
#include "tests/dist/ranks.h"
#include "tests/train/run_support.h"

namespace scaletrain::train {
namespace {

using Numbers = std::vector<std::int64_t>;

// What is found where numbers up to `most` fit, and what was tried for it.
std::string found(const Numbers& candidates, std::int64_t most) {
  std::string tried;
  const auto result = largest_that_fits(candidates, [&](std::int64_t samples) {
    tried += fmt::format(" {}", samples);
    return samples <= most;
  });
  return fmt::format("{}:{}", result.value_or(0), tried);
}

recipe::Recipe automatic(const testing::TinyRun& tiny, std::int64_t memory_mb) {
  return tiny.recipe(
      {testing::kVitChange, fmt::format("batch={{\"per_device\": \"auto\", \"global\": 12, "
                                        "\"memory_mb\": {}}}",
                                        memory_mb)});
}

std::unique_ptr<Run> found_run(const recipe::Recipe& recipe, const core::WorkerEnv& env) {
  return build_run(recipe, env, std::nullopt, {}, nn::built_in_factories(),
                   [&](Run& run) { choose_per_device(run, env, nn::built_in_factories()); });
}

std::string megabytes_of(const recipe::Recipe& recipe) {
  return testing::said_apart([&] {
    const auto use = measure_first_steps(recipe, {}, nn::built_in_factories());
    return fmt::format("{}", use.total() / 1000000);
  });
}

}  // namespace

TEST_CASE("all ranks take the most that fits, and a run that goes on takes that again") {
  const testing::TinyRun tiny;
  // Between what steps of 3 and of 6 samples take, each accumulated twice.
  const std::int64_t three = std::stoll(megabytes_of(tiny.recipe(
                         {testing::kVitChange, "batch={\"per_device\": 3, \"accumulate\": 2}"}))),
                     six = std::stoll(megabytes_of(tiny.recipe(
                         {testing::kVitChange, "batch={\"per_device\": 6, \"accumulate\": 1}"})));
  REQUIRE(six > three + 1);
  const recipe::Recipe recipe = automatic(tiny, three + 1);
  for (const auto& result : testing::run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
         const auto run = found_run(recipe, env);
         return fmt::format("{} x {} of {}, kept {}", run->batch.per_device, run->batch.accumulate,
                            run->recipe.batch.per_device, run->state.auto_per_device);
       })) {
    CHECK(result.text == "3 x 2 of 3, kept 3");
  }
  // Two would fit as well: it is what the checkpoint says, as long as it divides.
  const auto again = [&](std::int64_t before) {
    return testing::said_apart([&] {
      Run run;
      run.recipe = recipe;
      run.group = std::make_unique<dist::Group>(core::WorkerEnv(), at::kCPU,
                                                std::chrono::milliseconds(1000));
      run.mesh = std::make_unique<dist::Mesh>(*run.group, core::MeshPlan(1));
      run.state.auto_per_device = before;
      choose_per_device(run, {}, nn::built_in_factories());
      return fmt::format("{} {}", run.recipe.batch.per_device, run.state.auto_per_device);
    });
  };
  CHECK(again(2) == "2 2");
  CHECK(again(5) == "3 3");
}

TEST_CASE("where nothing ends the search, or nothing fits, that is an error") {
  const testing::TinyRun tiny;
  const auto error_of = [&](const recipe::Recipe& recipe) {
    return testing::said_apart([&] {
      found_run(recipe, {});
      return std::string("built");
    });
  };
  CHECK(error_of(tiny.recipe({"batch={\"per_device\": \"auto\", \"global\": 12}"})) ==
        "/batch/per_device: \"auto\" has no end on a CPU, which shares its memory\n"
        "  add \"memory_mb\": N, what the tensors of a rank may take");
  CHECK(error_of(automatic(tiny, 1))
            .starts_with("/batch/per_device: not even a step of 1 samples at a time fits: it "
                         "takes "));
}

TEST_CASE("what takes steps only has nothing to find a batch by") {
  const testing::TinyRun tiny;
  CHECK(testing::said_apart([&] {
          build_run(automatic(tiny, 1), {}, std::nullopt, {});
          return std::string("built");
        }) ==
        "/batch/per_device: \"auto\" is found when training begins\n"
        "  use a number: --set batch.per_device=N");
}

TEST_CASE("the search doubles until something does not fit, and halves what is left") {
  const Numbers divisors{1, 2, 3, 4, 6, 8, 12, 24};
  CHECK(found(divisors, 100) == "24: 1 2 4 8 24");
  CHECK(found(divisors, 24) == "24: 1 2 4 8 24");
  CHECK(found(divisors, 12) == "12: 1 2 4 8 24 12");
  CHECK(found(divisors, 7) == "6: 1 2 4 8 6");
  CHECK(found(divisors, 3) == "3: 1 2 4 3");
  CHECK(found(divisors, 1) == "1: 1 2");
  CHECK(found(divisors, 0) == "0: 1");
  CHECK(found({}, 5) == "0:");
  CHECK(found({7}, 7) == "7: 7");
}

TEST_CASE("candidates divide what a rank has of the global batch") {
  const testing::TinyRun tiny;
  const auto candidates = [&](std::vector<std::string> changes, int readers) {
    changes.emplace_back("batch={\"per_device\": \"auto\", \"global\": 24}");
    return batch_candidates(tiny.recipe(changes), readers);
  };
  CHECK(candidates({}, 2) == Numbers{1, 2, 3, 4, 6, 12});
  CHECK(candidates({"mix.mixup=0.2"}, 2) == Numbers{2, 4, 6, 12});
  CHECK(candidates({R"(model={"name": "resnet18", "num_classes": 3})"}, 3) == Numbers{2, 4, 8});
}

}  // namespace scaletrain::train
