#include "lib/recipe/recipe.h"

#include <doctest/doctest.h>

#include <stdexcept>

#include "lib/core/error.h"
#include "lib/recipe/range.h"

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

TEST_CASE("a component gives its options by type and nothing else") {
  Component component;
  component.name = "sgd";
  component.options = {{"momentum", 0.9}, {"nesterov", true}, {"n", std::int64_t{3}}};
  CHECK(component.number("momentum") == 0.9);
  CHECK(component.flag("nesterov"));
  CHECK(component.integer("n") == 3);
  CHECK_THROWS_WITH_AS((void)component.number("n"), "\"sgd\" has no key \"n\" of this type",
                       std::logic_error);
  CHECK_THROWS_AS((void)component.text("absent"), std::logic_error);
}

TEST_CASE("a range contains its ends only where it says so, and never NaN") {
  CHECK(from(1).to(3).contains(1));
  CHECK(from(1).to(3).contains(3));
  CHECK_FALSE(from(1).to(3).contains(3.1));
  CHECK_FALSE(above(0).below(1).contains(0));
  CHECK_FALSE(above(0).below(1).contains(1));
  CHECK_FALSE(from(0).contains(std::numeric_limits<double>::quiet_NaN()));
}

TEST_CASE("a range says what it contains") {
  CHECK(from(8).to(4096).phrase() == "from 8 to 4096");
  CHECK(from(0).below(1).phrase() == "of at least 0 and below 1");
  CHECK(above(0).to(1000000).phrase() == "above 0 and at most 1000000");
  CHECK(above(0).phrase() == "above 0");
  CHECK(from(0.5).phrase() == "of at least 0.5");
}

}  // namespace scaletrain::recipe
