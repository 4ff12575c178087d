#include "lib/recipe/sections/mix.h"

#include <doctest/doctest.h>

#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {

TEST_CASE("mixing needs pairs") {
  const std::vector<std::string> mix{"mix.mixup=0.2", "batch.per_device=33"};
  CHECK(error_of(minimal_recipe(), mix) ==
        "--set batch.per_device: 33 is odd, and /mix mixes pairs of samples\n"
        "  use 34");
  const Recipe recipe = parse_recipe(minimal_recipe(), "r.json", {"mix.mixup=0.2"});
  REQUIRE(recipe.mix.has_value());
  CHECK(recipe.mix->mixup == 0.2);
  CHECK(recipe.mix->cutmix == 0);
  CHECK(recipe.mix->probability == 1);
}

}  // namespace scaletrain::recipe
