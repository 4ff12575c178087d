// Facts that weights give about the recipe that they were trained with: the model's keys, the
// preprocessing of images, the dtype.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lib/format/weights/weight_files.h"

namespace scaletrain::exchange {

struct KnownOfWeights {
  std::string place;  // the file that says it; "": none does
  // Keys of /model that describe the network, "name" among them; {}: of a model that is not ours.
  nlohmann::json model = nlohmann::json::object();
  // Preprocessing of images. {}, "", nullopt: not known.
  std::vector<double> mean, std;  // for red, green, blue
  std::string eval_filter;        // "bicubic", or a name that is none of ours
  std::optional<double> crop;     // image size over the resized shorter side, timm's crop_pct
  std::string precision;          // a row of precisions.def; "": not known
};

// format::find_weight_files without reading the checkpoints of a run through: the newest that has a
// manifest stands for all. To look at what lies beside weights, not to load them.
format::WeightFiles files_to_look_at(const std::string& path);

// Reads recipe.json of a checkpoint or an export of ours, or config.json of timm or Hugging Face
// beside the files. Values that are missing or of another type are not known. Throws
// core::CheckpointError for a file that is not JSON.
KnownOfWeights known_of_weights(const format::WeightFiles& files);

// Reads the same facts in a recipe.json of ours.
KnownOfWeights known_of_recipe(const std::filesystem::path& recipe);

// True if both are names of the same dtype of computation: tf32 is fp32, bf16_pure is bf16.
bool is_same_dtype(const std::string& a, const std::string& b);

}  // namespace scaletrain::exchange
