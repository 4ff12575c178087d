// Lint rules of batches and sizes on the devices.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lib/recipe/lint/rules.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::recipe {
namespace {

constexpr std::int64_t kVocabularyMultiple = 64, kBatchMultiple = 8;
// BatchNorm's error grows below it (Wu and He 2018, figure 1).
constexpr std::int64_t kBatchOfNorm = 16;

std::int64_t rounded_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// True if matrix products may run on the tensor cores of a GPU in 16 or 8 bits.
bool uses_tensor_cores(const Recipe& recipe) {
  static constexpr std::array<std::string_view, 3> kNames{"bf16", "fp16", "fp8"};
  return recipe.device != "cpu" && std::ranges::find(kNames, recipe.precision.name) != kNames.end();
}

std::optional<LintAdvice> tiny_norm_batch(const LintSubject& subject) {
  const Model& model = subject.recipe.model;
  if (!uses_batch_norm(model) || model.linear_probe || subject.per_device == 0) return std::nullopt;
  const auto norm = model.options.find("norm");
  const bool is_shared = norm != model.options.end() && model.text("norm") == "sync_batch";
  const std::int64_t samples = subject.per_device * (is_shared ? subject.readers : 1);
  if (samples >= kBatchOfNorm) return std::nullopt;
  return LintAdvice{
      "/batch/per_device",
      fmt::format("BatchNorm of {} normalizes over {} samples", model.name, samples),
      fmt::format(R"(use {} or more samples, "norm": "sync_batch" on several ranks, or "group")",
                  kBatchOfNorm)};
}

std::optional<LintAdvice> odd_vocabulary(const LintSubject& subject) {
  const Recipe& recipe = subject.recipe;
  if (!uses_tensor_cores(recipe)) return std::nullopt;
  const std::int64_t size = recipe.model.integer("vocab_size");
  if (size % kVocabularyMultiple == 0) return std::nullopt;
  return LintAdvice{"/model/vocab_size",
                    fmt::format("{} is not a multiple of {}", size, kVocabularyMultiple),
                    fmt::format("use {}: the tokens beyond the tokenizer's stay unused",
                                rounded_up(size, kVocabularyMultiple))};
}

std::optional<LintAdvice> odd_batch(const LintSubject& subject) {
  const Recipe& recipe = subject.recipe;
  if (!uses_tensor_cores(recipe) || subject.per_device == 0) return std::nullopt;
  const bool has_tokens = reads_tokens(recipe.model);
  const std::int64_t rows = subject.per_device * (has_tokens ? recipe.data.context : 1);
  if (rows % kBatchMultiple == 0) return std::nullopt;
  return LintAdvice{
      "/batch/per_device",
      fmt::format("{} {} are not a multiple of {}, in {}", rows, has_tokens ? "tokens" : "samples",
                  kBatchMultiple, recipe.precision.name),
      fmt::format("use {} samples", rounded_up(subject.per_device, kBatchMultiple))};
}

}  // namespace

const std::vector<LintRule>& device_lint_rules() {
  static const std::vector<LintRule> rules{
      {"batch-norm-batch",
       {"/batch/per_device"},
       "statistics of few samples are noisy and differ from those of evaluation (Wu and He 2018)",
       tiny_norm_batch},
      {"vocabulary-size",
       {"/model/vocab_size"},
       "performance: the head's matrix product needs an aligned width for full speed on a GPU",
       odd_vocabulary},
      {"batch-multiple",
       {"/batch/per_device"},
       "performance: tensor cores compute 16-bit products in blocks of 8 rows",
       odd_batch}};
  return rules;
}

}  // namespace scaletrain::recipe
