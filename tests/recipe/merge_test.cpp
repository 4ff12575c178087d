#include "lib/recipe/merge.h"

#include <doctest/doctest.h>

#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

using namespace scaletrain::recipe;  // NOLINT(google-build-using-namespace)

TEST_CASE("one of several keys takes the place of the others, unless it is removed") {
  const Recipe steps = parse_recipe(minimal_recipe(), "r.json", {"steps=30"});
  CHECK(steps.length.value == 30);
  CHECK(steps.length.unit == Duration::Unit::kSteps);
  const Recipe same = parse_recipe(minimal_recipe(), "r.json", {"steps=30", "epochs=null"});
  CHECK(differing_keys(steps, same).empty());
}
