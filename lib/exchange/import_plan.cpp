#include "lib/exchange/import_plan.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "lib/core/disk/disk.h"
#include "lib/core/disk/read_faults.h"
#include "lib/core/error.h"
#include "lib/core/text/json_text.h"
#include "lib/exchange/companion_files.h"
#include "lib/exchange/foreign_config.h"
#include "lib/exchange/image_config.h"
#include "lib/exchange/language_config.h"
#include "lib/exchange/weights_classes.h"
#include "lib/format/checkpoint/checkpoint_folder_names.h"
#include "lib/format/hashed_file.h"
#include "lib/format/json_fields.h"
#include "lib/format/tokens/token_card.h"
#include "lib/format/weights/wrapper_names.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::exchange {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::int64_t kMostConfigBytes = 32 << 20, kMostTokenizerBytes = 256 << 20;
constexpr const char* kTokenizerFile = "tokenizer.json";
// Placeholder names of the recipe's data, so that the error of a run that opens them explains
// itself.
constexpr const char* kNoShard = "imported-without-data-000000.tar";
constexpr const char* kCardFile = "imported-without-data.tokens.json";
// Names of the classification layer's weight in timm's and torchvision's models.
constexpr std::array<const char*, 4> kHeads{"fc.weight", "head.weight", "head.fc.weight",
                                            "classifier.3.weight"};

// Returns the text of a file beside the weights; nullopt if there is none.
std::optional<std::string> read_beside(const format::WeightSet& weights, const char* name,
                                       std::int64_t most_bytes) {
  const fs::path path = weights.files().files.front().parent_path() / name;
  if (core::type_at(path) != fs::file_type::regular) return std::nullopt;
  return core::read_file(path, most_bytes, core::ExitCode::kData);
}

std::string beside(const format::WeightSet& weights, const char* name) {
  return (weights.files().files.front().parent_path() / name).string();
}

// Returns the tensor of that name, also with a wrapper's prefix; nullptr if there is none.
const format::WeightTensor* find_wrapped(const format::WeightSet& weights, const char* name) {
  if (const format::WeightTensor* const tensor = weights.find(name)) return tensor;
  for (const format::WeightTensor& tensor : weights.tensors()) {
    if (format::without_wrappers(tensor.name) == name) return &tensor;
  }
  return nullptr;
}

Described named_model(const std::string& name, bool is_language_model,
                      const format::WeightSet& weights) {
  Described found{.model = {{"name", name}}, .data = json::object()};
  if (is_language_model) return found;
  for (const char* const head : kHeads) {
    const format::WeightTensor* const tensor = find_wrapped(weights, head);
    if (tensor == nullptr || tensor->shape.empty()) continue;
    found.model["num_classes"] = tensor->shape.front();
    break;
  }
  return found;
}

// Returns a recipe for the model: how to compute with it, not how it was trained.
json recipe_of(Described described, const fs::path& out, bool is_language_model) {
  json recipe = {
      {"name", "imported"}, {"steps", 1}, {"optimizer", {{"name", "adamw"}, {"lr", 0.001}}}};
  recipe["model"] = std::move(described.model);
  recipe["data"] = std::move(described.data);
  if (is_language_model) {
    recipe["data"]["train"] = {{"tokens", (out / kNoTokens).string()}};
  } else {
    recipe["data"]["train"] = {{"shards", (out / kNoShard).string()}};
  }
  return recipe;
}

// The token that ends a document: one number, or the first of several.
std::int64_t end_of_text(const ForeignConfig& config) {
  if (!config.has("eos_token_id")) return 0;
  const json& token = config.object().at("eos_token_id");
  const json& first = token.is_array() && !token.empty() ? token.front() : token;
  if (!first.is_number_integer() || first < 0) config.refuse("eos_token_id", "the token's number");
  return first.get<std::int64_t>();
}

// A card of no token files, by which `generate` finds the tokenizer.
void take_tokenizer(const ForeignConfig& config, const json& model,
                    const format::WeightSet& weights, ImportPlan& plan) {
  const auto tokenizer = read_beside(weights, kTokenizerFile, kMostTokenizerBytes);
  const std::int64_t end = end_of_text(config);
  const auto vocabulary = model.at("vocab_size").get<std::int64_t>();
  if (!tokenizer || end >= vocabulary) return;
  constexpr std::int64_t kMostOfTwoBytes = 1 << 16;
  const format::TokenCard card{
      .tokenizer =
          fmt::format("{} {}", kTokenizerFile, format::sha256_of(beside(weights, kTokenizerFile))),
      .vocab_size = vocabulary,
      .end_of_text = end,
      .layout = "raw",
      .token_bytes = vocabulary <= kMostOfTwoBytes ? 2 : 4};
  plan.files[kCardFile] = core::json_text(token_card_json(card), 1) + "\n";
  plan.files[kTokenizerFile] = *tokenizer;
}

}  // namespace

ImportPlan plan_import(const ImportRequest& request, const format::WeightSet& weights) {
  ImportPlan plan;
  const auto dump = [&](Described described, bool is_language_model) {
    plan.classes = std::move(described.classes);
    plan.recipe = core::json_text(
        recipe_of(std::move(described), fs::absolute(request.out), is_language_model), 1);
  };
  if (!request.model.empty()) {
    const bool is_language_model =
        request.model == "gpt2" || request.model == "llama" || request.model == "mixtral";
    dump(named_model(request.model, is_language_model, weights), is_language_model);
    return plan;
  }
  if (const auto recipe = read_beside(weights, format::kRecipeFile, kMostConfigBytes)) {
    return {.recipe = *recipe, .classes = classes_of_weights(weights.files())};
  }
  const auto text = read_beside(weights, "config.json", kMostConfigBytes);
  if (!text) {
    throw core::UsageError("--model",
                           fmt::format("{} has neither config.json nor recipe.json beside it",
                                       weights.files().files.front().string()),
                           "name the model: --model resnet18");
  }
  const std::string place = beside(weights, "config.json");
  const json object = format::parse_object(*text, place);
  const ForeignConfig config(object, place);
  if (config.has("architecture")) {
    dump(describe_image_config(config), false);
    return plan;
  }
  Described described = describe_language_config(config);
  take_tokenizer(config, described.model, weights, plan);
  plan.files.merge(files_to_keep(companions_in(weights.files().files.front().parent_path())));
  dump(std::move(described), true);
  return plan;
}

}  // namespace scaletrain::exchange
