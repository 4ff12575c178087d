// Maps scaletrain's image models to those of timm or torchvision, and back.
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
  std::string first_conv, classifier;    // names of these modules
};

// Returns timm's name of the recipe's model. Throws core::UsageError naming the key that timm
// cannot represent.
ImageArchitecture timm_architecture(const recipe::Recipe& recipe);

// Returns torchvision's name of the model. Throws core::UsageError if it has no such model.
ImageArchitecture torchvision_architecture(const recipe::Recipe& recipe);

// Parts of a recipe that a config.json determines.
struct ImageModel {
  nlohmann::json model = nlohmann::json::object();  // the section, without "num_classes"
  std::int64_t image_size = 0;                      // 0: any
};

// Returns the model of a config.json in timm's layout ("architecture" and "model_args"); also
// accepts torchvision's names. Throws core::CheckpointError for an architecture or argument that
// scaletrain's models do not have.
ImageModel image_model_of(const ForeignConfig& config);

}  // namespace scaletrain::exchange
