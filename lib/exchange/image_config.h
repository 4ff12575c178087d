// config.json of an image model in timm's layout: architecture, classes and preprocessing.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/exchange/foreign_config.h"
#include "lib/exchange/image_models.h"

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::exchange {

// Returns the config.json that timm's create_model("local-dir:FOLDER") reads. Leaves `classes` out
// if their number differs from the model's.
nlohmann::ordered_json image_config(const recipe::Recipe& recipe,
                                    const ImageArchitecture& architecture,
                                    const std::vector<std::string>& classes);

// Model description found in a folder.
struct Described {
  // Sections of a recipe; "data" without sets.
  nlohmann::json model = nlohmann::json::object(), data = nlohmann::json::object();
  std::vector<std::string> classes = {};  // {}: not known
};

// Throws core::CheckpointError for anything that scaletrain's models or preprocessing do not
// support.
Described describe_image_config(const ForeignConfig& config);

// Returns the class names by number; {} if there are none. Throws core::CheckpointError for
// anything but a list of texts.
std::vector<std::string> label_names(const ForeignConfig& config);

}  // namespace scaletrain::exchange
