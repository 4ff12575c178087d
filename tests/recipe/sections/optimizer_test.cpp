#include "lib/recipe/sections/optimizer.h"

#include <doctest/doctest.h>

#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {

TEST_CASE("groups are read in their order, what they leave out being unchanged") {
  const Recipe recipe = parse_recipe(
      minimal_recipe(), "r.json",
      {R"(optimizer.groups=[{"match": "*.bias", "weight_decay": 0}, {"match": "a", "lr_scale": 3}])"});
  const std::vector<OptimizerGroup>& groups = recipe.optimizer.groups;
  REQUIRE(groups.size() == 2);
  CHECK(groups[0].match == "*.bias");
  CHECK(groups[0].lr_scale == 1);
  CHECK(groups[0].weight_decay == 0);
  CHECK(groups[1].lr_scale == 3);
  CHECK_FALSE(groups[1].weight_decay.has_value());
  CHECK(parse_recipe(minimal_recipe(), "r.json").optimizer.groups.empty());
}

TEST_CASE("mistakes in groups say what is allowed") {
  CHECK(error_of(minimal_recipe(), {R"(optimizer.groups=[{"lr_scale": 2}])"}) ==
        "--set optimizer.groups: /optimizer/groups/0: \"match\" is missing\n"
        "  add \"match\": a name of parameters, with * for any characters. Parameters of "
        "this group, for example `head.*`.");
  CHECK(error_of(minimal_recipe(), {R"(optimizer.groups=[{"match": "a", "lr_scale": 0}])"}) ==
        "--set optimizer.groups: /optimizer/groups/0/lr_scale: 0 is out of range\n"
        "  use a number above 0 and at most 1000");
  CHECK(
      error_of(minimal_recipe(), {R"(optimizer.groups=[{"match": "a", "lr_scale": 2},
                                       {"match": "b"}, {"match": "a", "weight_decay": 0}])"}) ==
      "--set optimizer.groups: /optimizer/groups/2/match: \"a\" is the pattern of group 0 already\n"
      "  make one group of them");
}

}  // namespace scaletrain::recipe
