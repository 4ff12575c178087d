#include "lib/recipe/sections/anomaly.h"

#include <doctest/doctest.h>

#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {

TEST_CASE(
    "anomaly is off by default, and skips steps beyond 6 deviations of 100 steps if it is on") {
  CHECK_FALSE(parse_recipe(minimal_recipe(), "r.json").anomaly.has_value());
  const Anomaly anomaly = *parse_recipe(minimal_recipe(), "r.json", {"anomaly={}"}).anomaly;
  CHECK(anomaly.policy == "skip");
  CHECK(anomaly.spike == 6);
  CHECK(anomaly.window == 100);
  CHECK(anomaly.max == 10);
  CHECK(anomaly.factor == 0.5);
  CHECK(anomaly.saturation == 0);
  CHECK_FALSE(anomaly.reads_at_once());
  CHECK(parse_recipe(minimal_recipe(), "r.json", {"anomaly.policy=rollback"})
            .anomaly->reads_at_once());
}

TEST_CASE("an unknown policy is refused with the known ones") {
  CHECK(error_of(minimal_recipe(), {"anomaly.policy=ignore"}) ==
        "--set anomaly.policy: \"ignore\" is not a choice here\n"
        R"(  use one of: "skip", "clip", "rollback", "reduce_lr", "stop")");
}

TEST_CASE("a rollback needs replicas that are equal, and asynchronous ones agree on no step") {
  CHECK(error_of(minimal_recipe(), {"anomaly.policy=rollback", "sync=periodic"}) ==
        "--set anomaly.policy: rollback needs replicas that are equal after each step, and /sync "
        "lets them differ\n"
        "  use another policy, or leave \"sync\" out");
  CHECK(error_of(minimal_recipe(), {"anomaly={}", "sync=periodic"}) == "no error");
  CHECK(error_of(minimal_recipe(), {"anomaly={}", "sync=async"}) ==
        "--set anomaly: asynchronous replicas have no step consensus\n"
        "  leave it out, or use another \"sync\"");
}

}  // namespace scaletrain::recipe
