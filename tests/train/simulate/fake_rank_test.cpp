#include "lib/train/simulate/fake_rank.h"

#include <ATen/Parallel.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <functional>
#include <memory>
#include <string>

#include "lib/core/error.h"
#include "tests/dist/ranks.h"
#include "tests/engine/one_rank.h"
#include "tests/train/simulate/plan_cases.h"

namespace scaletrain::train::fake_rank_test {
namespace {

recipe::Recipe gpt2_recipe(const recipe::Parallel& parallel) {
  recipe::Recipe recipe = testing::recipe_of_model("gpt2", testing::kGpt2);
  recipe::choose(recipe.optimizer, *recipe::optimizers().find("adamw"));
  recipe.data.context = 8;
  recipe.batch.per_device = 2;
  recipe.batch.accumulate = 4;
  recipe.batch.global.reset();
  recipe.parallel = parallel;
  return recipe;
}

// Returns what `body` does in a process of its own: this one must not start threads.
std::string apart(const std::function<std::string()>& body) {
  const auto result = testing::run_ranks({.world_size = 1}, [&](const core::WorkerEnv&) {
    at::set_num_threads(1);
    return body();
  });
  return result[0].text;
}

}  // namespace

TEST_CASE("a rank takes steps without its peers, with another micro-batch in each") {
  const std::string text = apart([] {
    const auto network = std::make_shared<dist::FakeNetwork>(dist::FakeJob{.world_size = 4});
    FakeRank rank(gpt2_recipe(testing::shards(4, "gradients")), network, nn::built_in_factories());
    rank.take_step(0);
    const std::size_t calls = network->count();
    rank.run().batch.per_device = 6;
    rank.take_step(1);
    rank.run().engine->settle();
    const bool has_gradients = !rank.run().engine->gradients().empty();
    rank.run().mesh->end("the test");
    return fmt::format("{} {}", calls > 0, has_gradients);
  });
  CHECK(text == "true true");
}

TEST_CASE("a rank of a later pipeline stage is refused") {
  const std::string text = apart([]() -> std::string {
    const auto network =
        std::make_shared<dist::FakeNetwork>(dist::FakeJob{.rank = 1, .world_size = 2});
    try {
      FakeRank(gpt2_recipe(testing::stages(2, "1f1b")), network, nn::built_in_factories());
    } catch (const core::RecipeError& error) {
      return error.place();
    }
    return "it was built";
  });
  CHECK(text == "/parallel/pipeline");
}

}  // namespace scaletrain::train::fake_rank_test
