// Facts stored beside weights about the recipe that trained them: keys of the model, image
// preprocessing, dtype.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lib/format/weights/weight_files.h"

namespace scaletrain::exchange {

struct KnownOfWeights {
  std::string place;  // file with these facts; "": none
  // Keys of /model that describe the network, including "name"; {}: not a scaletrain model.
  nlohmann::json model = nlohmann::json::object();
  // Preprocessing of images. {}, "", nullopt: not known.
  std::vector<double> mean, std;  // for red, green, blue
  std::string eval_filter;        // "bicubic", or a filter that scaletrain does not have
  std::optional<double> crop;     // image size over the resized shorter side, timm's crop_pct
  std::string precision;          // a row of precisions.def; "": not known
};

// Finds the files like format::find_weight_files(), but without verifying a run's checkpoints:
// takes the newest with a manifest. For reading facts beside weights, not for loading them.
format::WeightFiles files_to_look_at(const std::string& path);

// Reads recipe.json of a scaletrain checkpoint or export, or config.json of timm or Hugging Face
// beside the files. Missing values, or values of another type, count as unknown. Throws
// core::CheckpointError for a file that is not JSON.
KnownOfWeights known_of_weights(const format::WeightFiles& files);

// Reads the same facts from a scaletrain recipe.json.
KnownOfWeights known_of_recipe(const std::filesystem::path& recipe);

// True if both names stand for the same compute dtype: tf32 is fp32, bf16_pure is bf16.
bool is_same_dtype(const std::string& a, const std::string& b);

}  // namespace scaletrain::exchange
