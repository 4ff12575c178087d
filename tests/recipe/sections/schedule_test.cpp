#include "lib/recipe/sections/schedule.h"

#include <doctest/doctest.h>

#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {

TEST_CASE("an exponential warmup needs something to rise from") {
  const std::vector<std::string> from_zero{R"(schedule.warmup={"steps": 5})",
                                           "schedule.warmup_shape=exponential"};
  CHECK(error_of(minimal_recipe(), from_zero) ==
        "--set schedule.warmup_shape: exponential cannot rise from 0\n"
        "  give \"warmup_from\", such as 0.01");
  std::vector<std::string> from_more = from_zero;
  from_more.emplace_back("schedule.warmup_from=0.01");
  CHECK(parse_recipe(minimal_recipe(), "r.json", from_more).schedule.warmup_shape == "exponential");
}

TEST_CASE("one_cycle has its own warmup and takes no warmup") {
  CHECK(
      error_of(minimal_recipe(), {"schedule.decay=one_cycle", R"(schedule.warmup={"steps": 5})"}) ==
      "--set schedule.warmup: one_cycle has its own warmup\n"
      "  leave it out, and set \"rise_share\"");
  CHECK(parse_recipe(minimal_recipe(), "r.json", {"schedule.decay=one_cycle"})
            .schedule.decay.number("rise_share") == 0.3);
}

TEST_CASE("multi_step needs its milestones, a list of epochs") {
  CHECK(parse_recipe(minimal_recipe(), "r.json",
                     {R"(schedule.decay={"name": "multi_step", "milestones": [3, 4.5]})"})
            .schedule.decay.numbers("milestones") == std::vector<double>{3, 4.5});
  CHECK(error_of(minimal_recipe(), {"schedule.decay=multi_step"}).find("milestones") !=
        std::string::npos);
  CHECK(error_of(minimal_recipe(), {R"(schedule.decay={"name": "multi_step", "milestones": 3})"}) ==
        "--set schedule.decay: /schedule/decay/milestones: 3 is not a list\n"
        "  use a list of numbers above 0 and at most 1000000");
}

}  // namespace scaletrain::recipe
