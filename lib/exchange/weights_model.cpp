#include "lib/exchange/weights_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/core/text/glob.h"
#include "lib/core/text/json_text.h"
#include "lib/exchange/foreign_config.h"
#include "lib/exchange/language_config.h"
#include "lib/format/checkpoint/checkpoint_folder_names.h"
#include "lib/format/json_fields.h"

namespace scaletrain::exchange {
namespace {

using nlohmann::json;

// Keys that change the results of a model with the same tensors. The number of attention heads does
// too: lib/checkpoint/weights.h compares it.
constexpr std::array<const char*, 9> kComputed{
    "norm_eps",         "tied",     "rope_theta", "rope_scaling",
    "rope_factor",      "rope_low", "rope_high",  "rope_original_positions",
    "experts_per_token"};

json parsed(const std::filesystem::path& file) {
  constexpr std::int64_t kMostFileBytes = 32 << 20;
  return format::parse_object(core::read_file(file, kMostFileBytes, core::ExitCode::kData),
                              file.string());
}

bool has_text(const json& object, const char* key, const std::string& text) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() && *found == text;
}

// Returns the model keys that `config` describes; null if it is of another kind.
json described_by_config(json config, const std::string& name, const std::string& place) {
  if (!has_text(config, "model_type", name)) return {};
  for (const char* const drop : {"embd_pdrop", "attn_pdrop", "resid_pdrop"}) config.erase(drop);
  json described = describe_language_config(ForeignConfig(config, place)).model;
  if (described.contains("rope_theta") && !described.contains("rope_scaling")) {
    described["rope_scaling"] = "none";
  }
  return described;
}

// Describes the model of a checkpoint's recipe, without the keys that it does not use.
json described_by_recipe(const json& recipe, const std::string& name) {
  const auto model = recipe.find("model");
  if (model == recipe.end() || !model->is_object() || !has_text(*model, "name", name)) {
    return {};
  }
  json described = *model;
  const bool is_plain = has_text(described, "rope_scaling", "none");
  if (is_plain) described.erase("rope_factor");
  if (is_plain || has_text(described, "rope_scaling", "linear")) {
    for (const char* const key : {"rope_low", "rope_high", "rope_original_positions"}) {
      described.erase(key);
    }
  }
  return described;
}

json value_of(const recipe::Model& model, const char* key) {
  return std::visit([](const auto& value) { return json(value); }, model.options.at(key));
}

// Numbers may have been written in fp32.
bool is_same(const json& a, const json& b) {
  constexpr double kRounding = 1e-6;
  if (!a.is_number() || !b.is_number()) return a == b;
  const auto one = a.get<double>(), other = b.get<double>();
  return std::abs(one - other) <= kRounding * std::max(std::abs(one), std::abs(other));
}

}  // namespace

void check_same_computation(const recipe::Model& model, const format::WeightFiles& files) {
  if (!files.checkpoint && !files.config) return;
  const std::filesystem::path file =
      files.checkpoint ? *files.checkpoint / format::kRecipeFile : *files.config;
  const json described = files.checkpoint
                             ? described_by_recipe(parsed(file), model.name)
                             : described_by_config(parsed(file), model.name, file.string());
  std::vector<std::string> found, wanted, names;
  for (const char* const key : kComputed) {
    if (!described.contains(key) || !model.options.contains(key)) continue;
    const json& theirs = described.at(key);
    const json ours = value_of(model, key);
    if (is_same(theirs, ours) || core::matches_any(model.weights->allow_other, key)) continue;
    const std::string shown = core::printable(core::json_text(theirs));
    found.push_back(fmt::format("{} {}, not {}", key, shown, core::json_text(ours)));
    wanted.push_back(fmt::format("/model/{} to {}", key, shown));
    names.push_back(core::json_text(json(key)));
  }
  if (found.empty()) return;
  throw core::CheckpointError(
      file.string(), fmt::format("is of a model with {}", fmt::join(found, "; ")),
      fmt::format("set {}; to keep the difference, add \"allow_other\": [{}] in /model/weights",
                  fmt::join(wanted, ", "), fmt::join(names, ", ")));
}

}  // namespace scaletrain::exchange
