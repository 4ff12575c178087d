// Model sections of a recipe, as the loader would fill them, and inputs for these models.
#pragma once

#include <torch/utils.h>

#include <string>

#include "lib/recipe/catalog/lists.h"
#include "lib/recipe/sections/model.h"

namespace scaletrain::nn {

// Every key at its default, and ten classes; a larger transformer has two blocks, a GPT-2 is small.
inline recipe::Model model_recipe(const std::string& name) {
  recipe::Model model;
  model.name = name;
  model.num_classes = 10;
  const recipe::Row* const row = recipe::models().find(name);
  if (row == nullptr) return model;
  recipe::choose(model, *row);
  if (name.starts_with("vit_") && name != "vit_tiny") model.options["depth"] = std::int64_t{2};
  if (row->task == "language_modelling") {
    model.num_classes = 0;
    for (const auto& [key, value] :
         {std::pair{"vocab_size", 10}, std::pair{"positions", 8}, std::pair{"dim", 16},
          std::pair{"depth", 2}, std::pair{"heads", 4}}) {
      model.options[key] = std::int64_t{value};
    }
    if (model.options.contains("dropout")) model.options["dropout"] = 0.0;
    if (model.options.contains("kv_heads")) model.options["kv_heads"] = std::int64_t{2};
  }
  return model;
}

// Two samples of what the model takes.
inline at::Tensor model_input(const std::string& name) {
  if (recipe::models().find(name)->task == "language_modelling") {
    return torch::randint(10, {2, 8}, torch::kLong);
  }
  return torch::randn({2, 3, 32, 32});
}

}  // namespace scaletrain::nn
