#include "lib/recipe/sections/data/mix.h"

#include <doctest/doctest.h>

#include <limits>

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

TEST_CASE("mixing may end some epochs before training does") {
  const auto end_of = [](const std::string& epochs, const char* off) {
    const Recipe recipe =
        parse_recipe(minimal_recipe(), "r.json",
                     {"mix.mixup=0.2", epochs, std::string("mix.off_epochs=") + off});
    return first_unmixed_epoch(*recipe.mix, recipe.length);
  };
  CHECK(end_of("epochs=10", "3") == 7);
  CHECK(end_of("epochs=2.5", "1") == 2);  // the third is a part of one
  CHECK(end_of("epochs=10", "0") == std::numeric_limits<std::int64_t>::max());
  CHECK(error_of(minimal_recipe(), {"steps=100", "mix.mixup=0.2", "mix.off_epochs=1"}) ==
        "--set mix.off_epochs: counts epochs from the end, and the length of training is given in "
        "steps\n"
        "  give it in \"epochs\", or leave this out");
}

}  // namespace scaletrain::recipe
