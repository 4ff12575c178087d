#include "lib/recipe/sections/batch.h"

#include <doctest/doctest.h>

#include "lib/core/error.h"

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

}  // namespace scaletrain::recipe
