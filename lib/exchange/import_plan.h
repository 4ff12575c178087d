// Makes a recipe for imported weights.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "lib/format/weights/weight_set.h"

namespace scaletrain::exchange {

// Placeholder for token files in the recipe of imported weights, which have no data.
inline constexpr const char* kNoTokens = "imported-without-data-000000.bin";

// Arguments of `scaletrain checkpoint import`.
struct ImportRequest {
  std::string source;                 // argument of format::find_weight_files
  std::string out;                    // the new folder
  std::string model;                  // for a source without a config.json; "": the source's model
  std::string part;                   // part of a PyTorch file
  std::vector<std::string> settings;  // changes of the recipe, such as "model.depth=6"
  std::string worker;                 // worker program; "": the standard one
};

struct ImportPlan {
  std::string recipe;                             // JSON text; its data file is a placeholder
  std::vector<std::string> classes = {};          // {}: not known
  std::map<std::string, std::string> files = {};  // files to write: tokenizer and card
};

// Takes the model from the request, else from recipe.json beside the weights (a scaletrain export
// or checkpoint), else from config.json in timm's or Hugging Face's layout. Throws core::UsageError
// if there is none of them, core::CheckpointError if scaletrain has no model that config.json
// describes.
ImportPlan plan_import(const ImportRequest& request, const format::WeightSet& weights);

}  // namespace scaletrain::exchange
