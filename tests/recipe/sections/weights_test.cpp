#include "lib/recipe/sections/weights.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {

TEST_CASE("weights are a path, or an object with what may be missing and unused") {
  const Recipe path =
      parse_recipe(minimal_recipe(), "r.json", {"model.weights=/w/model.safetensors"});
  REQUIRE(path.model.weights.has_value());
  CHECK(path.model.weights->path == "/w/model.safetensors");
  CHECK(path.model.weights->allow_missing.empty());
  CHECK_FALSE(path.model.weights->new_head);
  const Recipe whole =
      parse_recipe(minimal_recipe(), "r.json",
                   {R"(model.weights={"path": "/w", "part": "model_ema", "new_head": true,
                         "allow_missing": "fc.*", "allow_unused": ["a", "b.*"],
                         "allow_other": "rope_*"})"});
  CHECK(whole.model.weights->part == "model_ema");
  CHECK(whole.model.weights->new_head);
  CHECK((whole.model.weights->allow_missing == std::vector<std::string>{"fc.*"}));
  CHECK((whole.model.weights->allow_unused == std::vector<std::string>{"a", "b.*"}));
  CHECK((whole.model.weights->allow_other == std::vector<std::string>{"rope_*"}));
  CHECK_FALSE(parse_recipe(minimal_recipe(), "r.json").model.weights.has_value());
}

TEST_CASE("an object without a path, or with an empty pattern, is refused") {
  CHECK(error_of(minimal_recipe(), {"model.weights={}"}) ==
        "--set model.weights: \"path\" is missing\n"
        "  add \"path\": a path. File (.safetensors, .pt, .pth, .bin, or the index of "
        "several), folder of timm, torchvision or Hugging Face, checkpoint, or run folder.");
  CHECK(error_of(minimal_recipe(), {R"(model.weights={"path": "/w", "allow_unused": [""]})"}) ==
        "--set model.weights: /model/weights/allow_unused/0: is empty\n"
        "  use a name of tensors, with * for any characters, or a list of them");
}

}  // namespace scaletrain::recipe
