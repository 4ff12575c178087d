// Maps our image models to those of timm or torchvision, and back.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "lib/exchange/foreign_config.h"

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::exchange {

struct ImageArchitecture {
  std::string name;  // "vit_tiny_patch16_224"
  nlohmann::ordered_json args =
      nlohmann::ordered_json::object();  // further arguments of timm's create_model
  std::string first_conv, classifier;    // the modules of these purposes
};

// Returns timm's name of the recipe's model. Throws core::UsageError where timm cannot build it,
// naming the key that stands in the way.
ImageArchitecture timm_architecture(const recipe::Recipe& recipe);

// Returns torchvision's name of the model. Throws core::UsageError where it has no such model.
ImageArchitecture torchvision_architecture(const recipe::Recipe& recipe);

// Parts of a recipe.
struct ImageModel {
  nlohmann::json model = nlohmann::json::object();  // the section, without "num_classes"
  std::int64_t image_size = 0;                      // 0: any
};

// The model of a config.json in timm's layout: "architecture" and "model_args"; torchvision's names
// are taken too. Throws core::CheckpointError for an architecture or an argument that our models do
// not have.
ImageModel image_model_of(const ForeignConfig& config);

}  // namespace scaletrain::exchange
