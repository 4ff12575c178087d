#include "lib/recipe/sections/profile.h"

#include <doctest/doctest.h>

#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {

TEST_CASE("a trace is of three steps behind the first ten") {
  CHECK_FALSE(parse_recipe(minimal_recipe(), "r.json").profile.has_value());
  const Profile profile = *parse_recipe(minimal_recipe(), "r.json", {"profile={}"}).profile;
  CHECK(profile.after == 10);
  CHECK(profile.steps == 3);
  CHECK(parse_recipe(minimal_recipe(), "r.json", {"profile.after=0"}).profile->after == 0);
  CHECK(error_of(minimal_recipe(), {"profile.steps=0"}) ==
        "--set profile.steps: 0 is out of range\n"
        "  use an integer from 1 to 1000");
}

}  // namespace scaletrain::recipe
