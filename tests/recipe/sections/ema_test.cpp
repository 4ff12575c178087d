#include "lib/recipe/sections/ema.h"

#include <doctest/doctest.h>

#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {

TEST_CASE("a running mean has defaults, and is not there unless it is asked for") {
  CHECK_FALSE(parse_recipe(minimal_recipe(), "r.json").ema.has_value());
  const Recipe recipe = parse_recipe(minimal_recipe(), "r.json", {"ema={}"});
  REQUIRE(recipe.ema.has_value());
  CHECK(recipe.ema->decay == std::vector{0.9999});
  CHECK_FALSE(recipe.ema->warmup);
  CHECK(recipe.ema->every == 1);
  CHECK(error_of(minimal_recipe(), {"ema.decay=1"}) ==
        "--set ema.decay: 1 is out of range\n"
        "  use a number of at least 0 and below 1");
}

TEST_CASE("a list of decays is a mean for each") {
  CHECK(parse_recipe(minimal_recipe(), "r.json", {"ema.decay=[0.9, 0.99]"}).ema->decay ==
        std::vector{0.9, 0.99});
  CHECK(error_of(minimal_recipe(), {"ema.decay=[0.9, 0.9]"}) ==
        "--set ema.decay: has a number twice\n"
        "  leave it out once");
  CHECK(error_of(minimal_recipe(), {"ema.decay=[0.9, 2]"}) ==
        "--set ema.decay: /ema/decay/1: 2 is out of range\n"
        "  use a number of at least 0 and below 1");
  CHECK(error_of(minimal_recipe(), {"ema.decay=slow"}) ==
        "--set ema.decay: \"slow\" is not a number or a list\n"
        "  use a number of at least 0 and below 1, or a list of them");
}

TEST_CASE("the best is chosen by a mean only where there is one") {
  CHECK(error_of(minimal_recipe(), {"checkpoint.best.weights=ema"}) ==
        "--set checkpoint.best.weights: there is no ema\n"
        "  add \"ema\": {}, or leave it out");
  CHECK(parse_recipe(minimal_recipe(), "r.json", {"checkpoint.best.weights=ema", "ema={}"})
            .checkpoint.best.weights == "ema");
}

TEST_CASE("an optimizer that is a mean of the weights itself takes no ema") {
  CHECK(error_of(minimal_recipe(),
                 {R"(optimizer={"name": "schedule_free_adamw", "lr": 0.1})", "ema={}"}) ==
        "--set ema: schedule_free_adamw evaluates and saves averaged weights already\n"
        "  leave it out");
}

TEST_CASE("what a missing section would be compared with is not looked at") {
  const std::string error =
      error_of(minimal_recipe("\"ema\": {}, \"sam\": {}, \"swa\": {}"), {"optimizer=null"});
  CHECK(error.find("\"optimizer\" is missing") != std::string::npos);
  CHECK(error.find("/ema") == std::string::npos);
}

}  // namespace scaletrain::recipe
