#include "launcher/commands/prove/short_recipe.h"

#include <algorithm>
#include <string>
#include <utility>

#include "launcher/commands/trial_recipe.h"
#include "lib/core/error.h"
#include "lib/recipe/load.h"
#include "lib/recipe/ranks.h"

namespace scaletrain::launcher {
namespace {

recipe::Recipe with_few_steps(const recipe::Recipe& recipe, std::int64_t steps) {
  recipe::Recipe result = recipe;
  make_trial(steps, 1, result);
  result.schedule = recipe.schedule;
  result.schedule.plateau.reset();
  result.ema = recipe.ema;
  if (result.mix) result.mix->off_epochs = 0;
  result.parallel.replica.reset();
  result.checkpoint.async = false;
  result.checkpoint.keep_last = 2;
  result.checkpoint.incremental = false;
  if (result.threads == 0) result.threads = 1;
  return result;
}

// The largest divisor of `share` that is at most `most`.
std::int64_t micro_batch_of(std::int64_t share, std::int64_t most) {
  std::int64_t size = std::min(share, most);
  while (share % size != 0) --size;
  return size;
}

recipe::Batch batch_of(std::int64_t global, int ranks, const recipe::Batch& batch) {
  return {.per_device = micro_batch_of(global / ranks, batch.per_device),
          .accumulate = std::nullopt,
          .global = global};
}

}  // namespace

ShortRecipe shorten(const recipe::Recipe& recipe, std::int64_t steps, int most_ranks) {
  if (recipe.batch.is_automatic()) {
    throw core::UsageError("/batch/per_device", "\"auto\" may choose another size in each run",
                           "give a number: --set batch.per_device=N");
  }
  const int copy = recipe::ranks_of_copy(recipe);
  const std::int64_t global = recipe::plan_batch(recipe, copy).global;
  ShortRecipe result{.recipe = with_few_steps(recipe, steps), .most_ranks = 1};
  for (int ranks = most_ranks; ranks > 1; ranks /= 2) {
    if (global % ranks != 0) continue;
    recipe::Recipe divided = result.recipe;
    divided.batch = batch_of(global, ranks, recipe.batch);
    recipe::Recipe alone = divided;
    alone.parallel = {};
    if (!refusal_of(alone, ranks).empty()) continue;
    if (ranks >= copy && !refusal_of(divided, copy).empty()) continue;
    return {.recipe = std::move(divided), .most_ranks = ranks};
  }
  result.recipe.batch = batch_of(global, 1, recipe.batch);
  return result;
}

std::string refusal_of(const recipe::Recipe& recipe, int ranks) {
  try {
    const recipe::Recipe checked =
        recipe::parse_recipe(recipe::to_json(recipe), recipe.name, {}, recipe.model.catalog);
    recipe::plan_batch(checked, ranks);
    return "";
  } catch (const core::Error& error) {
    return error.found();
  }
}

}  // namespace scaletrain::launcher
