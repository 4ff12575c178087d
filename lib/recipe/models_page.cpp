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
    R"(# The models

Written by `scaletrain recipe models`; a test compares this file with it.

A model with a source has the names, the shapes and the starting distribution of that package's
tensors, so that weights go both ways, and its results: `tests/parity/models_test.py` compares names and
shapes of every model, and logits and gradients of each family. Parameters are counted with 1,000
classes, for images of 224 pixels and patches of 16, or 4 of a ConvNeXt. Top-1 is what the source
publishes for the weights that are named, on ImageNet-1k: torchvision in the `meta` of its weights,
timm in its `results/results-imagenet.csv` (ConvNeXt at 288 pixels, the others at 224).

[The recipe reference](recipe.md#models) has each key with its default and
range.
)";

std::string models_of_task(const std::string& task) {
  std::string text =
      "\n| model | what it is | source | parameters | top-1 | weights | keys |\n"
      "|---|---|---|---:|---:|---|---|\n";
  for (const Row& row : models().rows) {
    if (row.task != task) continue;
    std::vector<std::string> keys;
    keys.reserve(row.options.size());
    for (const Option& option : row.options) keys.push_back(fmt::format("`{}`", option.key));
    const Published known = row.published.value_or(Published{});
    text += fmt::format(
        "| `{}` | {} | {} | {} | {} | {} | {} |\n", row.name, row.help, known.source,
        known.parameters == 0
            ? ""
            : fmt::format("{:.1f} M", static_cast<double>(known.parameters) / 1e6),
        known.top1 == 0 ? "" : fmt::format("{:.1f} %", known.top1),
        known.weights.empty() ? "" : fmt::format("`{}`", known.weights), fmt::join(keys, ", "));
  }
  return text;
}

}  // namespace

std::string markdown_models() {
  return fmt::format("{}\n## Of images\n{}\n## Of text\n{}", kModelsIntroduction,
                     models_of_task("image_classification"), models_of_task("language_modelling"));
}

}  // namespace scaletrain::recipe
