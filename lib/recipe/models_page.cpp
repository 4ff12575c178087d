// Writes docs/reference/models.md: every model with its source.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "lib/recipe/catalog/lists.h"
#include "lib/recipe/load.h"

namespace scaletrain::recipe {
namespace {

constexpr const char* kModelsIntroduction =
    R"(# Models

Written by `scaletrain recipe models`; a test compares this file with it.

`model.name` chooses the model; [the recipe reference](recipe.md#models) lists the keys of each with defaults
and ranges. A model with a source has the tensor names, shapes, initialization and outputs of the model in
that Python package, so weights can be [imported and exported](weights.md). `tests/parity/models_test.py`
compares names and shapes of every model, and logits and gradients of each family.

- **parameters** are counted with 1,000 classes, for images of 224 x 224 pixels and patches of 16 (ConvNeXt: 4).
- **top-1** is the ImageNet-1k accuracy that the source publishes for the named weights: torchvision in their
  `meta`, timm in `results/results-imagenet.csv` (ConvNeXt at 288 pixels, the others at 224).
- **parallel** lists the strategies that the model supports besides data parallelism and sharding
  (ZeRO/FSDP), which all support. `recipe check` refuses the others. `sequence` needs `tensor`.
)";

// Parallel strategies that not all models support.
std::string strategies(const Row& row) {
  std::vector<std::string> names;
  if (!row.has_rule(Rule::Kind::kOneUnit)) names.emplace_back("pipeline");
  if (row.has_rule(Rule::Kind::kTensorRanksShare)) names.emplace_back("tensor");
  if (row.has_rule(Rule::Kind::kSequenceRanksShare)) names.emplace_back("sequence");
  if (row.has_rule(Rule::Kind::kContextRanksShare)) names.emplace_back("context");
  const bool has_experts = std::any_of(row.options.begin(), row.options.end(),
                                       [](const Option& one) { return one.key == "experts"; });
  if (has_experts) names.emplace_back("expert");
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string models_of_task(const std::string& task) {
  std::string text =
      "\n| model | description | source | parameters | top-1 | weights | parallel | keys |\n"
      "|---|---|---|---:|---:|---|---|---|\n";
  for (const Row& row : models().rows) {
    if (row.task != task) continue;
    std::vector<std::string> keys;
    keys.reserve(row.options.size());
    for (const Option& option : row.options) keys.push_back(fmt::format("`{}`", option.key));
    const Published known = row.published.value_or(Published{});
    text += fmt::format("| `{}` | {} | {} | {} | {} | {} | {} | {} |\n", row.name, row.help,
                        known.source,
                        known.parameters == 0
                            ? ""
                            : fmt::format("{:.1f} M", static_cast<double>(known.parameters) / 1e6),
                        known.top1 == 0 ? "" : fmt::format("{:.1f} %", known.top1),
                        known.weights.empty() ? "" : fmt::format("`{}`", known.weights),
                        strategies(row), fmt::join(keys, ", "));
  }
  return text;
}

}  // namespace

std::string markdown_models() {
  return fmt::format("{}\n## Image models\n{}\n## Language models\n{}", kModelsIntroduction,
                     models_of_task("image_classification"), models_of_task("language_modelling"));
}

}  // namespace scaletrain::recipe
