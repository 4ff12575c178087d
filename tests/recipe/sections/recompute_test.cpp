#include "lib/recipe/sections/recompute.h"

#include <doctest/doctest.h>

#include <fstream>

#include "lib/core/error.h"
#include "lib/recipe/catalog/row_keys.h"
#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"
#include "tests/temporary_folder.h"

namespace scaletrain::recipe {
namespace {

std::optional<Recompute> read(const std::string& set) {
  return parse_recipe(minimal_recipe(), "r.json", {set}).recompute;
}

}  // namespace

TEST_CASE("what is computed again is all, none, one unit of several, or has a name") {
  CHECK_FALSE(parse_recipe(minimal_recipe(), "r.json").recompute.has_value());
  CHECK(read("recompute=none")->is_none());
  CHECK(read("recompute=all")->units == "all");
  CHECK(read("recompute.every=3")->every == 3);
  CHECK(read("recompute.match=h.*")->match == std::vector<std::string>{"h.*"});
  CHECK(read("recompute.budget_mb=512")->budget_mb == 512);
  CHECK(error_of(minimal_recipe(), {"recompute=some"}) ==
        "--set recompute: /recompute/units: \"some\" is not a choice here\n"
        "  use one of: \"none\", \"all\"");
  CHECK(error_of(minimal_recipe(), {R"(recompute={"every": 2, "match": "h.1"})"}) ==
        "--set recompute: /recompute/match: excludes \"every\"\n"
        "  use one of: \"units\", \"every\", \"match\", \"budget_mb\"; null removes an inherited "
        "key");
}

TEST_CASE("a model that is one unit has nothing that could be run again") {
  const test::TemporaryFolder folder;
  std::ofstream(folder.file("m.pt")) << "x";
  const std::vector<std::string> model{
      R"(model={"name": "torchscript", "num_classes": 3, "file": ")" + folder.file("m.pt") + "\"}",
      "recompute=all"};
  CHECK(error_of(minimal_recipe(), model) ==
        "--set recompute: torchscript has one unit, and backward needs all of it at once\n"
        "  leave it out");
}

TEST_CASE("one unit may be said by its number") {
  const auto refusal = [](const Row& row) {
    try {
      parse_recipe(minimal_recipe(), "r.json",
                   {R"(model={"name": "own", "num_classes": 3})", "recompute=all"},
                   catalog_with({row}));
    } catch (const core::RecipeError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  CHECK(refusal({"own", "", {HAS_UNITS_FIXED(2)}}) == "no error");
  CHECK(refusal({"own", "", {}}) == "no error");
  CHECK(refusal({"own", "", {HAS_UNITS_FIXED(1)}}) ==
        "--set recompute: own has one unit, and backward needs all of it at once\n"
        "  leave it out");
}

}  // namespace scaletrain::recipe
