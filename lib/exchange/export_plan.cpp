#include "lib/exchange/export_plan.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "lib/core/error.h"
#include "lib/core/text/json_text.h"
#include "lib/exchange/image_config.h"
#include "lib/exchange/image_models.h"
#include "lib/exchange/language_config.h"
#include "lib/exchange/tokenizer_files.h"
#include "lib/format/checkpoint/checkpoint_folder_names.h"

namespace scaletrain::exchange {
namespace {

using nlohmann::ordered_json;

constexpr const char* kConfigFile = "config.json";

struct Kind {
  std::string_view name;
  const char* weights;
  bool is_plain;  // our own names and files: of any model
};

constexpr std::array<Kind, 5> kKinds{{{"timm", "model.safetensors", false},
                                      {"torchvision", "model.pth", false},
                                      {"huggingface", "model.safetensors", false},
                                      {"pt", "model.pt", true},
                                      {"safetensors", "model.safetensors", true}}};

const Kind& kind_of(std::string_view name) {
  for (const Kind& kind : kKinds) {
    if (kind.name == name) return kind;
  }
  throw core::InternalError("plan_export", std::string(name));
}

std::string file_of(const ordered_json& config) { return core::json_text(config, 1) + "\n"; }

// Takes the special tokens of the initial weights, unless documents ended with another token.
void take_special_tokens(const nlohmann::json& ids, std::optional<std::int64_t> end_of_text,
                         ordered_json& config) {
  const auto end = ids.find("eos_token_id");
  if (end != ids.end() && end_of_text) {
    const bool is_among = end->is_array()
                              ? std::find(end->begin(), end->end(), *end_of_text) != end->end()
                              : *end == *end_of_text;
    if (!is_among) return;
  }
  for (const auto& [key, id] : ids.items()) config[key] = id;
}

void plan_language_model(const ExportSource& source, const format::WeightSet& weights,
                         std::string_view dtype, ExportPlan& plan) {
  TokenizerFiles tokenizer;
  if (reads_tokens(source.recipe.model)) tokenizer = tokenizer_files(source.recipe, source.run);
  Companions companions = source.companions;
  if (!tokenizer.name.empty()) keep_tokenizer(companions, tokenizer.name);
  plan.prefix = language_prefix(source.recipe.model);
  ordered_json config = language_config(source.recipe, weights, tokenizer.end_of_text, dtype);
  take_special_tokens(companions.special_tokens, tokenizer.end_of_text, config);
  plan.files[kConfigFile] = file_of(config);
  plan.files.merge(companions.files);
  const bool has_tokenizer = plan.files.contains("tokenizer.json") ||
                             plan.files.contains("tokenizer.model") ||
                             plan.files.contains("vocab.json");
  plan.files.merge(tokenizer.files);
  if (!tokenizer.missing.empty() && !has_tokenizer)
    plan.note = "without a tokenizer: " + tokenizer.missing;
}

}  // namespace

std::vector<std::string> export_kinds() {
  std::vector<std::string> names;
  names.reserve(kKinds.size());
  for (const Kind& kind : kKinds) names.emplace_back(kind.name);
  return names;
}

bool takes_int8(std::string_view to) { return kind_of(to).is_plain; }

ExportPlan plan_export(std::string_view to, const ExportSource& source,
                       const format::WeightSet& weights, std::string_view dtype) {
  const Kind& kind = kind_of(to);
  ExportPlan plan{.weights = kind.weights};
  if (kind.is_plain) {
    plan.files[format::kRecipeFile] = source.recipe_text;
    plan.files[format::kClassesFile] = core::json_text(ordered_json(source.classes)) + "\n";
  } else if (to == "huggingface") {
    plan_language_model(source, weights, dtype, plan);
  } else {
    const ImageArchitecture architecture =
        to == "timm" ? timm_architecture(source.recipe) : torchvision_architecture(source.recipe);
    plan.files[kConfigFile] = file_of(image_config(source.recipe, architecture, source.classes));
  }
  return plan;
}

std::size_t output_dim(const recipe::Model& model, std::string_view tensor) {
  return model.name == "gpt2" && tensor.find(".c_") != std::string_view::npos ? 1 : 0;
}

}  // namespace scaletrain::exchange
