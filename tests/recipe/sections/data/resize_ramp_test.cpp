#include "lib/recipe/sections/data/resize_ramp.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {
namespace {

const std::string kResnet = R"(model={"name": "resnet18", "num_classes": 2})";
const std::string kRamp = R"(data.resize_ramp={"from": 160, "over": {"epochs": 4}})";

}  // namespace

TEST_CASE("a ramp has defaults and reads back, and is not there unless it is asked for") {
  CHECK_FALSE(parse_recipe(minimal_recipe(), "r.json").data.resize_ramp.has_value());
  const Recipe recipe = parse_recipe(minimal_recipe(), "r.json", {kResnet, kRamp});
  REQUIRE(recipe.data.resize_ramp.has_value());
  CHECK(recipe.data.resize_ramp->from == 160);
  CHECK(recipe.data.resize_ramp->start.value == 0);
  CHECK(recipe.data.resize_ramp->multiple_of == 32);
  const std::string text = to_json(recipe);
  CHECK(to_json(parse_recipe(text, "r.json")) == text);
}

TEST_CASE("a ramp that does not grow is refused") {
  CHECK(error_of(minimal_recipe(), {kResnet, kRamp, "data.image_size=160"}) ==
        "--set data.resize_ramp: /data/resize_ramp/from: 160 does not grow to \"image_size\", "
        "which is 160\n"
        "  use less, or leave the ramp out");
}

TEST_CASE("a model for images of one size is refused by name") {
  for (const std::string model : {"mlp", "vit_small"}) {
    CAPTURE(model);
    const std::string change = fmt::format(R"(model={{"name": "{}", "num_classes": 2}})", model);
    CHECK(error_of(minimal_recipe(), {change, kRamp}) ==
          fmt::format("--set data.resize_ramp: {} has weights for images of one size\n"
                      "  leave it out, or use a convolutional model such as resnet50",
                      model));
  }
}

TEST_CASE("the smallest images are as large as the model asks") {
  CHECK(
      error_of(minimal_recipe(), {R"(model={"name": "convnext_tiny", "num_classes": 2})",
                                  R"(data.resize_ramp={"from": 16, "over": {"epochs": 4}})"}) ==
      "--set model: /model/patch_size: 8 times 4 is more than /data/resize_ramp/from, which is 16\n"
      "  change one of them");
}

}  // namespace scaletrain::recipe
