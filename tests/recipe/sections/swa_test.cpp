#include "lib/recipe/sections/swa.h"

#include <doctest/doctest.h>

#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {

TEST_CASE("an equal mean has defaults, and is not there unless it is asked for") {
  CHECK_FALSE(parse_recipe(minimal_recipe(), "r.json").swa.has_value());
  const Recipe recipe = parse_recipe(minimal_recipe(), "r.json", {"swa={}"});
  REQUIRE(recipe.swa.has_value());
  CHECK_FALSE(recipe.swa->start.has_value());
  CHECK(recipe.swa->every.unit == Duration::Unit::kEpochs);
  CHECK(recipe.swa->every.value == 1);
  CHECK_FALSE(recipe.swa->lr.has_value());
  CHECK(recipe.swa->anneal.value == 10);
  CHECK(recipe.swa->anneal_strategy == "cos");
}

TEST_CASE("its resolved keys read back") {
  for (const char* const keys :
       {"swa={}", R"(swa={"start": {"steps": 7}, "every": {"epochs": 0.5}})",
        R"(swa={"lr": 0.02, "anneal": {"steps": 0}, "anneal_strategy": "linear"})"}) {
    const std::string text = to_json(parse_recipe(minimal_recipe(), "r.json", {keys}));
    CHECK(to_json(parse_recipe(text, "r.json")) == text);
  }
  CHECK(error_of(minimal_recipe(), {"swa.start.minutes=5"}).find("minutes") != std::string::npos);
}

TEST_CASE("nothing else may be a mean of the weights") {
  CHECK(error_of(minimal_recipe(), {"swa={}", "ema={}"}) ==
        "--set swa: averages the weights, and so does /ema\n"
        "  leave one of them out");
  CHECK(error_of(minimal_recipe(),
                 {"swa={}", R"(optimizer={"name": "schedule_free_adamw", "lr": 0.1})"}) ==
        "--set swa: schedule_free_adamw evaluates and saves averaged weights already\n"
        "  leave it out");
}

TEST_CASE("a model with BatchNorm is refused by name, with what can be done") {
  const std::string resnet = R"(model={"name": "resnet18", "num_classes": 2})";
  CHECK(error_of(minimal_recipe(), {resnet, "swa={}"}) ==
        "--set swa: averaged weights of resnet18 would need their own BatchNorm statistics, which "
        "are not computed\n"
        "  use \"norm\": \"group\" in /model, or /ema");
  CHECK(parse_recipe(minimal_recipe(), "r.json", {resnet, "model.norm=group", "swa={}"})
            .swa.has_value());
}

}  // namespace scaletrain::recipe
