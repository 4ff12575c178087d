// Transforms and mixing in a recipe.
#include <doctest/doctest.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "lib/recipe/catalog/lists.h"
#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

using namespace scaletrain::recipe;  // NOLINT(google-build-using-namespace)

namespace {

Recipe with_augment(const std::string& augment) {
  return parse_recipe(minimal_recipe(), "r.json", {"data.train.augment=" + augment});
}

std::string augment_error(const std::string& augment) {
  return error_of(minimal_recipe(), {"data.train.augment=" + augment});
}

}  // namespace

TEST_CASE("a name stands for a list of transforms, which the resolved recipe spells out") {
  const Recipe recipe = with_augment("torchvision-v2");
  const std::vector<Component>& augment = recipe.data.train.augment;
  REQUIRE(augment.size() == 4);
  CHECK(augment[0].name == "random_resized_crop");
  CHECK(augment[0].text("filter") == "bilinear");
  CHECK(augment[2].name == "trivial_augment");
  CHECK(augment[2].text("interpolation") == "bilinear");
  CHECK(augment[3].number("probability") == 0.1);
  const Recipe again = parse_recipe(to_json(recipe), "r.json");
  CHECK(differing_keys(recipe, again).empty());
}

TEST_CASE("every list of transforms by name can be read") {
  CHECK(augment_presets().size() >= 5);
  for (const Preset& preset : augment_presets()) {
    CAPTURE(preset.name);
    CHECK(with_augment(preset.name).data.train.augment.size() >= 2);
  }
}

TEST_CASE("a wrong list of transforms is reported with its remedy") {
  CHECK(augment_error("tim-a3") ==
        "--set data.train.augment: \"tim-a3\" is not a list by name\n  did you mean \"timm-a3\"?");
  std::vector<std::string> presets;
  for (const Preset& preset : augment_presets()) presets.push_back(preset.name);
  CHECK(augment_error("swin") ==
        fmt::format("--set data.train.augment: \"swin\" is not a list by name\n"
                    "  use one of: {}, or a list of {}",
                    fmt::join(presets, ", "), fmt::join(transforms().names(), ", ")));
  CHECK(augment_error(R"(["random_flip", "random_resized_crop"])") ==
        "--set data.train.augment: /data/train/augment/1: \"random_resized_crop\" chooses what is "
        "decoded and cannot come later\n"
        "  put it in front of the others, and leave out another crop");
  CHECK(augment_error(R"([{"name": "rand_augment", "interpolation": "cubic"}])") ==
        "--set data.train.augment: /data/train/augment/0/interpolation: \"cubic\" is not a choice "
        "here\n  use one of: \"nearest\", \"bilinear\"");
}
