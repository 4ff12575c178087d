#include "launcher/place/batch_check.h"

#include <doctest/doctest.h>

#include "lib/core/error.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::launcher {
namespace {

recipe::Recipe recipe_with(recipe::Batch batch, const std::string& order = "indexed") {
  recipe::Recipe recipe;
  recipe.model.name = "mlp";
  recipe.batch = batch;
  recipe.data.order = order;
  recipe.data.lanes = 6;
  return recipe;
}

std::string refusal(const recipe::Recipe& recipe, int ranks) {
  try {
    (void)plan_batch(recipe, ranks);
  } catch (const core::RecipeError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("the batch is planned for all ranks, which read without a mesh") {
  const recipe::BatchPlan plan =
      plan_batch(recipe_with({.per_device = 8, .accumulate = {}, .global = 96}), 3);
  CHECK(plan.accumulate == 4);  // 96 / (8 * 3)
  CHECK(plan.global == 96);
}

TEST_CASE("a batch or lanes that do not go into the ranks are refused") {
  const recipe::Batch global = {.per_device = 8, .accumulate = {}, .global = 64};
  CHECK(refusal(recipe_with(global), 3).starts_with("/batch/global: 64 is not a multiple of 24"));
  CHECK(refusal(recipe_with(global), 4).empty());  // lanes belong to the streamed order alone
  CHECK(refusal(recipe_with(global, "streamed"), 4) ==
        "/data/lanes: 6 is not a multiple of the 4 ranks\n"
        "  change one of them; another number of lanes changes the data order");
  CHECK(refusal(recipe_with(global, "streamed"), 2).empty());
}

TEST_CASE("the ranks of a pipeline share a data-parallel rank, and need a micro-batch each") {
  recipe::Recipe recipe = recipe_with({.per_device = 8, .accumulate = {}, .global = 64});
  recipe.parallel.pipeline = 2;
  CHECK(batch_text(plan_batch(recipe, 4), 4) == "64 = 8 x 4 x 2 groups of 2 ranks");
  CHECK(refusal(recipe, 16) ==
        "/batch: 1 micro-batch of a step is fewer than the 2 ranks of the pipeline\n"
        "  use at least 2, better 4 times as many; one is 64 samples of the global batch");
}

TEST_CASE("a batch is written as what it is made of, as far as that is known") {
  const recipe::Batch fixed = {.per_device = 8, .accumulate = {}, .global = 96};
  CHECK(batch_text(plan_batch(recipe_with(fixed), 3), 3) == "96 = 8 x 4 x 3 ranks");
  CHECK(batch_text(plan_batch(recipe_with(fixed), 3), 3, " each", " times") ==
        "96 = 8 each x 4 times x 3 ranks");
  recipe::Recipe shared = recipe_with(fixed);
  shared.parallel.tensor = 2;
  CHECK(batch_text(plan_batch(shared, 6), 6) == "96 = 8 x 4 x 3 groups of 2 ranks");
  const recipe::Batch open = {.per_device = 0, .accumulate = {}, .global = 96};
  CHECK(batch_text(plan_batch(recipe_with(open), 3), 3) ==
        "96 over 3 ranks, in micro-batches that fit");
  const recipe::Batch growing = {
      .per_device = 8,
      .accumulate = {},
      .global = 96,
      .ramp = core::BatchRamp{.start = 24, .increment = 24, .samples = 9}};
  CHECK(batch_text(plan_batch(recipe_with(growing), 3), 3) ==
        "96 = 8 x 4 x 3 ranks, from 24 on by 24 over 9 samples");
}

TEST_CASE("batch_fits says the same without a reason") {
  const recipe::Recipe recipe = recipe_with({.per_device = 8, .accumulate = {}, .global = 64});
  CHECK_FALSE(batch_fits(recipe, 3));
  CHECK(batch_fits(recipe, 4));
}

}  // namespace scaletrain::launcher
