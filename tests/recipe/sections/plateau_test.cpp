#include "lib/recipe/sections/plateau.h"

#include <doctest/doctest.h>

#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {

TEST_CASE("a plateau goes by the measure of the best where it names none, on data.val") {
  const std::string val = "data.val.shards=v.tar";
  const Recipe recipe = parse_recipe(minimal_recipe(), "r.json", {val, "schedule.plateau={}"});
  REQUIRE(recipe.schedule.plateau.has_value());
  CHECK(recipe.schedule.plateau->metric == "top1");
  CHECK(recipe.schedule.plateau->patience == 10);
  CHECK(error_of(minimal_recipe(), {val, "schedule.plateau.metric=map"}) ==
        "--set schedule.plateau.metric: image_classification does not measure map\n"
        "  use one of: top1, top5, loss");
}

}  // namespace scaletrain::recipe
