#include "lib/recipe/sections/batch.h"

#include <doctest/doctest.h>

#include "lib/core/error.h"
#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {

TEST_CASE("plan_batch multiplies accumulation and ranks") {
  const BatchPlan plan = plan_batch({.per_device = 32, .accumulate = 2, .global = {}}, 4);
  CHECK(plan.per_device == 32);
  CHECK(plan.accumulate == 2);
  CHECK(plan.global == 256);  // 32 * 2 * 4
}

TEST_CASE("plan_batch divides a global batch over the ranks") {
  const BatchPlan plan = plan_batch({.per_device = 32, .accumulate = {}, .global = 256}, 2);
  CHECK(plan.accumulate == 4);  // 256 / (32 * 2)
  CHECK(plan.global == 256);
}

TEST_CASE("plan_batch names what would fit") {
  const auto message = [](std::int64_t global, int ranks) -> std::string {
    try {
      (void)plan_batch({.per_device = 32, .accumulate = {}, .global = global}, ranks);
    } catch (const core::RecipeError& error) {
      return error.what();
    }
    return "no error";
  };
  CHECK(message(256, 3) ==
        "/batch/global: 256 is not a multiple of 96 = per_device 32 x 3 ranks\n"
        "  use 192 or 288, or another number of ranks");
  CHECK(message(64, 3) ==
        "/batch/global: 64 is not a multiple of 96 = per_device 32 x 3 ranks\n"
        "  use 96, or fewer ranks, or a smaller per_device");
  CHECK(message(96, 3) == "no error");
}

TEST_CASE("the samples of a device may be left to be found, of a global batch") {
  const Recipe recipe = parse_recipe(
      minimal_recipe(), "r.json",
      {R"(batch={"per_device": "auto", "global": 64, "memory_mb": 100})", "mix.mixup=0.2"});
  CHECK(recipe.batch.is_automatic());
  CHECK(recipe.batch.memory_mb == 100);
  const BatchPlan plan = plan_batch(recipe.batch, 4);
  CHECK(plan.per_device == 0);
  CHECK(plan.global == 64);
  CHECK_THROWS_WITH(plan_batch(recipe.batch, 3),
                    "/batch/global: 64 is not a multiple of 3 ranks\n"
                    "  use 63 or 66, or another number of ranks");
  CHECK_THROWS_WITH(plan_batch(recipe.batch, 65),
                    "/batch/global: 64 is not a multiple of 65 ranks\n"
                    "  use 65, or fewer ranks");
  CHECK_FALSE(parse_recipe(minimal_recipe(), "r.json").batch.is_automatic());

  CHECK(
      error_of(minimal_recipe(), {"batch.per_device=auto"}) ==
      "--set batch.per_device: \"auto\" finds what \"global\" is divided into, and there is none\n"
      "  add \"global\": N in place of \"accumulate\", or use a number");
  CHECK(error_of(minimal_recipe(), {"batch.per_device=many"}) ==
        "--set batch.per_device: \"many\" is not a number of samples\n"
        "  use an integer from 1 to 1048576, or \"auto\"");
}

}  // namespace scaletrain::recipe
