#include "launcher/commands/start/new_recipe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "lib/core/error.h"
#include "lib/recipe/catalog/lists.h"
#include "lib/recipe/catalog/task.h"

namespace scaletrain::launcher {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kUsualSide = 224;

const recipe::Row& row_of(const FoundData& found, const std::string& wish) {
  const bool is_text = recipe::find_task(found.task)->reads == recipe::TaskRow::Reads::kTokens;
  const std::string name = !wish.empty() ? wish : is_text ? "gpt2" : "resnet18";
  const recipe::Row* const row = recipe::models().find(name);
  std::vector<std::string> fitting;
  for (const recipe::Row& one : recipe::models().rows) {
    const bool reads_text = recipe::find_task(one.task)->reads == recipe::TaskRow::Reads::kTokens;
    const bool needs_more = std::any_of(one.options.begin(), one.options.end(),
                                        [](const auto& option) { return option.is_required(); });
    if (reads_text == is_text && !needs_more) fitting.push_back(one.name);
  }
  if (row != nullptr && std::find(fitting.begin(), fitting.end(), name) != fitting.end()) {
    return *row;
  }
  throw core::UsageError(
      "--model", fmt::format("\"{}\" is not a model for {}", name, is_text ? "text" : "images"),
      fmt::format("use one of: {}", fmt::join(fitting, ", ")));
}

bool has_option(const recipe::Row& row, const std::string& key) {
  return std::any_of(row.options.begin(), row.options.end(),
                     [&](const recipe::Option& option) { return option.key == key; });
}

// The largest power of two that is at most `most` and `limit`; 1 at least.
std::int64_t power_of_two(std::int64_t most, std::int64_t limit) {
  std::int64_t value = 1;
  while (value * 2 <= std::min(most, limit)) value *= 2;
  return value;
}

// The side of training images, in steps that all models take.
std::int64_t image_size_for(std::int64_t side) {
  for (const std::int64_t size : {std::int64_t{32}, std::int64_t{64}, std::int64_t{128}}) {
    if (side > 0 && side <= size + size / 4) return size;
  }
  return kUsualSide;
}

// Vision transformers and ConvNeXts learn with a lower rate than networks with BatchNorm.
double image_rate(const recipe::Row& row) { return has_option(row, "patch_size") ? 0.0005 : 0.001; }

Json image_model(const FoundData& found, const recipe::Row& row, std::int64_t size) {
  Json model{{"name", row.name}, {"num_classes", found.classes}};
  if (!has_option(row, "patch_size")) return model;
  const bool is_transformer = has_option(row, "heads");
  constexpr std::int64_t kLargestPatch = 16;
  if (is_transformer) {
    model["patch_size"] = std::min(kLargestPatch, size / 8);
  } else if (size <= 64) {
    model["patch_size"] = 2;
  }
  return model;
}

void add_images(const FoundData& found, const recipe::Row& row, Json& recipe) {
  const std::int64_t size = image_size_for(found.side);
  constexpr std::int64_t kMostImages = 32;
  constexpr std::int64_t kFewSteps = 4;  // of an epoch on one device
  recipe["task"] = found.task;
  recipe["model"] = image_model(found, row, size);
  recipe["data"] = {{"train", found.train}};
  const Json small = Json::array({"random_crop", "random_flip"});
  recipe["data"]["train"]["augment"] = size <= 32 ? small : Json("torchvision-v1");
  if (!found.val.is_null()) recipe["data"]["val"] = found.val;
  if (!found.test.is_null()) recipe["data"]["test"] = found.test;
  recipe["data"]["image_size"] = size;
  recipe["batch"] = {{"per_device", std::max<std::int64_t>(
                                        2, power_of_two(found.samples / kFewSteps, kMostImages))}};
  recipe["epochs"] = 20;
  recipe["optimizer"] = {{"name", "adamw"}, {"lr", image_rate(row)}, {"weight_decay", 0.05}};
  recipe["schedule"] = {{"warmup", {{"epochs", 1}}}, {"decay", "cosine"}};
  const bool is_multi = found.task == "multi_label_classification";
  if (is_multi) {
    recipe["loss"] = {{"name", "binary_cross_entropy"}};
  } else {
    recipe["loss"] = {{"name", "cross_entropy"}, {"label_smoothing", 0.1}};
  }
}

// Shapes of a small language model that every row of text models can have.
Json text_model(const FoundData& found, const recipe::Row& row, std::int64_t positions) {
  constexpr std::int64_t kManyTokens = 100'000'000;  // enough for GPT-2 small
  const bool is_large = found.tokens >= kManyTokens;
  Json model{{"name", row.name}, {"vocab_size", found.vocab_size}, {"positions", positions}};
  model["dim"] = is_large ? 768 : 256;
  model["depth"] = is_large ? 12 : 6;
  model["heads"] = is_large ? 12 : 8;
  if (has_option(row, "kv_heads")) model["kv_heads"] = 4;
  if (has_option(row, "dropout")) model["dropout"] = is_large ? 0.0 : 0.1;
  return model;
}

void add_text(const FoundData& found, const recipe::Row& row, Json& recipe) {
  constexpr std::int64_t kLongest = 256, kMostWindows = 16, kPasses = 5;
  const std::int64_t positions = power_of_two(found.tokens / 64, kLongest);
  const std::int64_t windows = found.tokens / (positions + 1);
  const std::int64_t batch = power_of_two(windows / 4, kMostWindows);
  const std::int64_t steps = std::clamp<std::int64_t>(kPasses * windows / batch, 100, 20'000);
  recipe["model"] = text_model(found, row, positions);
  recipe["data"] = {{"train", found.train}};
  if (!found.val.is_null()) recipe["data"]["val"] = found.val;
  if (!found.test.is_null()) recipe["data"]["test"] = found.test;
  recipe["batch"] = {{"per_device", batch}};
  recipe["steps"] = steps;
  recipe["optimizer"] = {{"name", "adamw"}, {"lr", 0.001}, {"weight_decay", 0.1}, {"beta2", 0.95}};
  recipe["schedule"] = {{"warmup", {{"steps", steps / 20}}},
                        {"decay", {{"name", "cosine"}, {"final_factor", 0.1}}}};
  recipe["clip"] = {{"norm", 1.0}};
  if (!found.val.is_null()) recipe["validate"] = {{"every", {{"steps", steps / 10}}}};
  recipe["checkpoint"] = {{"every", {{"steps", steps / 10}}}, {"keep_last", 2}};
}

}  // namespace

Json new_recipe(const FoundData& found, const std::string& model) {
  const recipe::Row& row = row_of(found, model);
  Json recipe{{"$schema", "./recipe.schema.json"}};
  recipe["description"] = Json::array(
      {fmt::format("Made by scaletrain recipe new: {}, {} and usual values to start from.",
                   found.kind, row.name),
       "Check: scaletrain recipe check FILE. All keys with their defaults: scaletrain recipe show "
       "FILE.",
       "On several GPUs: scaletrain launch --nproc gpu FILE. The batch is that of one device.",
       "Completion in an editor: scaletrain recipe schema > recipe.schema.json."});
  for (const std::string& remark : found.remarks) recipe["description"].push_back(remark);
  recipe["name"] = found.name;
  recipe["seed"] = 1;
  if (found.tokens > 0) {
    add_text(found, row, recipe);
  } else {
    add_images(found, row, recipe);
  }
  for (const auto& [key, value] : found.more.items()) recipe["data"][key] = value;
  recipe["output"] = "runs/" + found.name;
  return recipe;
}

}  // namespace scaletrain::launcher
