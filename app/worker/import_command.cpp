#include "app/worker/import_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "lib/checkpoint/checkpoint.h"
#include "lib/checkpoint/weights.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/printable.h"
#include "lib/core/text/command_line.h"
#include "lib/exchange/import_flags.h"
#include "lib/exchange/import_plan.h"
#include "lib/exchange/new_folder.h"
#include "lib/format/checkpoint/checkpoint_folder_names.h"
#include "lib/format/hashed_file.h"
#include "lib/format/weights/weight_set.h"
#include "lib/nn/model.h"
#include "lib/recipe/load.h"

namespace scaletrain::app {
namespace {

namespace fs = std::filesystem;

recipe::Recipe recipe_for(const exchange::ImportRequest& request, const exchange::ImportPlan& plan,
                          const Models& models) {
  std::vector<std::string> settings = request.settings;
  settings.push_back(fmt::format("output={}", fs::absolute(request.out).string()));
  try {
    return recipe::parse_recipe(plan.recipe, fmt::format("the recipe for {}", request.source),
                                settings, models.catalog);
  } catch (const core::RecipeError& error) {
    // Its lines are those of no file that a person has.
    throw core::UsageError(error.place(), error.found(),
                           fmt::format("{}\n  change it with --set KEY=VALUE", error.remedy()));
  }
}

// Every tensor of the model, from the tensor of its name.
checkpoint::Tensors take_tensors(const exchange::ImportRequest& request, nn::Model& model) {
  checkpoint::Tensors tensors;
  for (const auto& item : model.named_parameters()) tensors[item.key()] = item.value().detach();
  for (const auto& item : model.named_buffers()) tensors[item.key()] = item.value();
  recipe::Weights weights;
  weights.path = request.source;
  weights.part = request.part;
  // Nothing is adapted: the recipe has the sizes of the weights.
  const units::WeightRules rules{.also_called = model.weight_rules().also_called};
  checkpoint::load_weights(weights, rules, tensors);
  return tensors;
}

void import_weights(const exchange::ImportRequest& request, const Models& models) {
  const format::WeightSet weights(request.source, request.part,
                                  [](const std::string& damage) { core::warn("{}", damage); });
  const exchange::ImportPlan plan = exchange::plan_import(request, weights);
  const recipe::Recipe recipe = recipe_for(request, plan, models);
  const auto model = nn::make_blank_model(recipe.model, recipe.data.image_size, models.factories);
  // The weights were imported, so there is no optimizer state and no batch.
  checkpoint::Contents contents{
      .files = {}, .state = {}, .classes = plan.classes, .recipe = recipe::to_json(recipe)};
  const checkpoint::Tensors tensors = take_tensors(request, *model);
  contents.file(format::kModelFile).shards = units::full_shards(tensors);
  contents.file(format::kOptimizerFile, checkpoint::TensorFile::Kind::kOptimizer);
  core::Disk& disk = core::system_disk();
  exchange::publish_folder(disk, request.out, /*replaces=*/false, [&](const fs::path& folder) {
    for (const auto& [name, text] : plan.files) format::write_hashed(disk, folder / name, text);
    format::write_hashed(disk, folder / format::kRecipeFile, contents.recipe);
    checkpoint::save(disk, folder, contents, {.last = 1});
  });
  std::printf("%s: %s, %zu tensors\n", core::printable(request.out).c_str(),
              recipe.model.name.c_str(), tensors.size());
}

}  // namespace

int run_import(int argc, char** argv, const Models& models) {
  CLI::App app("Weights from elsewhere as a checkpoint.", "scaletrain checkpoint import");
  exchange::ImportRequest request;
  exchange::add_import_flags(app, request);
  if (!core::parse_command_line(app, {argv + 2, argv + argc})) return 0;
  import_weights(request, models);
  return 0;
}

}  // namespace scaletrain::app
