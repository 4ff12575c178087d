// The peak memory of a simulated rank's step, predicted from two small steps and measured.
#include "lib/train/simulate/step_memory.h"

#include <ATen/Parallel.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <sstream>

#include "tests/dist/ranks.h"
#include "tests/engine/one_rank.h"
#include "tests/train/simulate/plan_cases.h"

namespace scaletrain::train::step_memory_test {
namespace {

using testing::kGpt2;
using testing::kVit;
using testing::shards;

struct Case {
  const char* model;
  testing::PlanOptions options;
  recipe::Parallel parallel = {};
  std::int64_t micro_steps = 1;
  bool recomputes = false;
  int ranks = 1;
};

recipe::Recipe recipe_of(const Case& one, std::int64_t samples) {
  recipe::Recipe recipe = testing::recipe_of_model(one.model, one.options);
  recipe::choose(recipe.optimizer, *recipe::optimizers().find("adamw"));
  recipe.data.context = 8;
  recipe.batch.per_device = samples;
  recipe.batch.accumulate = one.micro_steps;
  recipe.batch.global.reset();
  recipe.parallel = one.parallel;
  if (one.recomputes) {
    recipe.recompute = recipe::Recompute{.units = "all", .every = {}, .match = {}};
  }
  return recipe;
}

std::string text_of(const Case& one) {
  constexpr std::int64_t kSamples = 24;
  const dist::FakeJob job{.rank = 0, .world_size = one.ranks, .ranks_per_node = one.ranks};
  const auto predicted =
      predict_step_memory(recipe_of(one, kSamples), job, nn::built_in_factories());
  const auto measured =
      measure_step_memory(recipe_of(one, kSamples), job, nn::built_in_factories());
  return fmt::format("{} {} {}", predicted.was_replayed, predicted.peak.total(),
                     measured.peak.total());
}

}  // namespace

TEST_CASE("two small steps predict the peak of a step within a thousandth") {
  const std::vector<Case> cases{
      {"gpt2", kGpt2},
      {"gpt2", kGpt2, {}, 3},
      {"gpt2", kGpt2, {}, 1, true},
      {"gpt2", kGpt2, {}, 2, false, 4},
      {"gpt2", kGpt2, shards(4, "optimizer"), 2, false, 4},
      {"gpt2", kGpt2, shards(4, "parameters"), 1, true, 4},
      {"vit_tiny", kVit},
      {"resnet18", {}},
  };
  for (const Case& one : cases) {
    CAPTURE(one.model);
    CAPTURE(one.parallel.shard_level);
    CAPTURE(one.micro_steps);
    CAPTURE(one.ranks);
    const auto result =
        testing::run_ranks({.world_size = 1, .limit_s = 200}, [&](const core::WorkerEnv&) {
          at::set_num_threads(1);
          return text_of(one);
        });
    CAPTURE(result[0].text);
    std::string replayed;
    double predicted = 0, measured = 0;
    std::istringstream(result[0].text) >> replayed >> predicted >> measured;
    CHECK(replayed == "true");
    REQUIRE(measured > 0);
    CHECK(std::abs(predicted / measured - 1) < 1e-3);
  }
}

}  // namespace scaletrain::train::step_memory_test
