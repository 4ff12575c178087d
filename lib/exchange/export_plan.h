// Plan of an export: a folder with the weights and files beside them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lib/exchange/companion_files.h"
#include "lib/format/weights/weight_set.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::exchange {

// The checkpoint to export.
struct ExportSource {
  recipe::Recipe recipe;
  std::string recipe_text;           // its recipe.json as text
  std::vector<std::string> classes;  // {}: not known
  // For a language model: the companion files of its initial weights.
  Companions companions = {};
  std::filesystem::path run = {};  // its folder, for the card of its training tokens
};

struct ExportPlan {
  std::string weights;                            // "model.safetensors", "model.pt", "model.pth"
  std::string prefix = {};                        // put before each tensor's name
  std::map<std::string, std::string> files = {};  // contents by name
  std::string note = {};                          // note for the user; "": nothing
};

// Returns the valid values of `to`.
std::vector<std::string> export_kinds();

// True if the format supports int8 weights with scales (lib/format/weights/weight_cast.h), which no
// other library loads directly.
bool takes_int8(std::string_view to);

// Plans an export. `dtype`: safetensors name of the floating-point dtype. Throws core::UsageError
// if `to` has no such model.
ExportPlan plan_export(std::string_view to, const ExportSource& source,
                       const format::WeightSet& weights, std::string_view dtype);

// Returns the output dimension of a weight: the first, or the second for GPT-2's linear layers.
std::size_t output_dim(const recipe::Model& model, std::string_view tensor);

}  // namespace scaletrain::exchange
