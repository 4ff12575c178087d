#include "lib/recipe/sections/offload.h"

#include <doctest/doctest.h>

#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {

TEST_CASE("nothing goes to the host unless it is asked for, one kind by one") {
  CHECK_FALSE(parse_recipe(minimal_recipe(), "r.json").offload.has_value());
  const auto offload = parse_recipe(minimal_recipe(), "r.json", {"offload.optimizer=true"}).offload;
  REQUIRE(offload.has_value());
  CHECK(offload->optimizer);
  CHECK_FALSE(offload->activations);
  CHECK(
      parse_recipe(minimal_recipe(), "r.json", {"offload.activations=true"}).offload->activations);
  CHECK(error_of(minimal_recipe(), {"offload={}"}) ==
        "--set offload: none of \"activations\", \"optimizer\" is there\n"
        "  add one of them");
}

}  // namespace scaletrain::recipe
