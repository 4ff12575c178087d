#include "lib/recipe/sections/clip.h"

#include <doctest/doctest.h>

#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {

TEST_CASE("gradients are limited in exactly one way") {
  const auto clip = [](const char* text) {
    return *parse_recipe(minimal_recipe(), "r.json", {std::string("clip=") + text}).clip;
  };
  CHECK(clip(R"({"norm": 2})").norm == 2);
  CHECK(clip(R"({"value": 0.5})").value == 0.5);
  CHECK_FALSE(clip(R"({"value": 0.5})").norm.has_value());
  CHECK(clip(R"({"adaptive": 0.01})").adaptive == 0.01);
  CHECK(error_of(minimal_recipe(), {"clip={}"}) ==
        "--set clip: none of \"norm\", \"value\", \"adaptive\" is there\n"
        "  add one of them");
  CHECK(error_of(minimal_recipe(), {R"(clip={"norm": 1, "value": 1})"}).find("excludes") !=
        std::string::npos);
}

}  // namespace scaletrain::recipe
