// Model sections of a recipe, as the loader would fill them.
#pragma once

#include <string>

#include "lib/recipe/recipe.h"

namespace scaletrain::nn {

inline recipe::Model model_recipe(const std::string& name) {
  recipe::Model model;
  model.name = name;
  model.num_classes = 10;
  if (name.starts_with("resnet")) {
    model.options = {{"zero_init_residual", false}};
  } else if (name == "vit_tiny") {
    model.options = {
        {"patch_size", std::int64_t{4}}, {"dim", std::int64_t{192}}, {"depth", std::int64_t{12}},
        {"heads", std::int64_t{3}},      {"mlp_ratio", 4.0},         {"dropout", 0.0}};
  } else {
    model.options = {{"hidden", std::int64_t{256}}, {"layers", std::int64_t{2}}, {"dropout", 0.0}};
  }
  return model;
}

}  // namespace scaletrain::nn
