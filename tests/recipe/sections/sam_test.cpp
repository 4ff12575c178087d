#include "lib/recipe/sections/sam.h"

#include <doctest/doctest.h>

#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {

TEST_CASE("sam has a radius above 0") {
  CHECK_FALSE(parse_recipe(minimal_recipe(), "r.json").sam.has_value());
  CHECK(parse_recipe(minimal_recipe(), "r.json", {"sam={}"}).sam->rho == 0.05);
  CHECK(parse_recipe(minimal_recipe(), "r.json", {"sam.adaptive=true"}).sam->adaptive);
  CHECK(error_of(minimal_recipe(), {"sam.rho=0"}) ==
        "--set sam.rho: 0 is out of range\n"
        "  use a number above 0 and at most 1000");
}

}  // namespace scaletrain::recipe
