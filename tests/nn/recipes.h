// Model sections of a recipe, as the loader would fill them, and inputs for these models.
#pragma once

#include <torch/utils.h>

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
  } else if (name == "gpt2") {
    model.num_classes = 0;
    model.options = {{"vocab_size", std::int64_t{10}},
                     {"positions", std::int64_t{8}},
                     {"dim", std::int64_t{16}},
                     {"depth", std::int64_t{2}},
                     {"heads", std::int64_t{4}},
                     {"mlp_ratio", 4.0},
                     {"dropout", 0.0}};
  } else {
    model.options = {{"hidden", std::int64_t{256}}, {"layers", std::int64_t{2}}, {"dropout", 0.0}};
  }
  return model;
}

// Two samples of what the model takes.
inline at::Tensor model_input(const std::string& name) {
  if (name == "gpt2") return torch::randint(10, {2, 8}, torch::kLong);
  return torch::randn({2, 3, 32, 32});
}

}  // namespace scaletrain::nn
