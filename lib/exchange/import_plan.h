// A recipe for weights that came from elsewhere.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "lib/format/weights/weight_set.h"

namespace scaletrain::exchange {

// Token file in the recipe of imported weights, which have no data.
inline constexpr const char* kNoTokens = "imported-without-data-000000.bin";

// Arguments of `scaletrain checkpoint import`.
struct ImportRequest {
  std::string source;                 // argument of format::find_weight_files
  std::string out;                    // the new folder
  std::string model;                  // for a source without a config.json; "": the source's
  std::string part;                   // part of a PyTorch file
  std::vector<std::string> settings;  // "model.depth=6": changes of the recipe
  std::string worker;                 // the program that does it; "": ours
};

struct ImportPlan {
  std::string recipe;                             // JSON, its data a file that is not there
  std::vector<std::string> classes = {};          // {}: not known
  std::map<std::string, std::string> files = {};  // for the folder: the tokenizer and its card
};

// The model is the request's; without it that of recipe.json beside the weights, if an export of
// ours or a checkpoint is read; otherwise that of config.json, in timm's or Hugging Face's layout.
// Throws core::UsageError where none of them is there, core::CheckpointError where our models
// cannot be what config.json describes.
ImportPlan plan_import(const ImportRequest& request, const format::WeightSet& weights);

}  // namespace scaletrain::exchange
