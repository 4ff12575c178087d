#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/commands/commands.h"
#include "launcher/commands/worker_ranks.h"
#include "launcher/jobs/checks/run_request.h"
#include "launcher/jobs/checks/worker_program.h"
#include "lib/exchange/known_tokenizer.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/recipe/evaluation.h"
#include "lib/recipe/load.h"

namespace scaletrain::launcher {
namespace {

void check_request(const recipe::EvaluationRequest& asked) {
  const std::filesystem::path checkpoint = format::checkpoint_at(asked.checkpoint);
  const recipe::CatalogPtr catalog = catalog_of_flag(asked.worker);
  const std::optional<recipe::Recipe> stored = stored_recipe(checkpoint, catalog);
  if (!stored) return;
  const recipe::Recipe recipe = recipe::parse_recipe(
      recipe::to_json(*stored), (checkpoint / "recipe.json").string(),
      recipe::overrides_of(asked, recipe::reads_tokens(stored->model)), catalog);
  recipe::check_files(asked, recipe.task);
  exchange::check_tokenizer_of_set(recipe, recipe::set_of(asked, recipe.data), checkpoint);
}

void check_request(const recipe::PredictionRequest& asked) {
  const std::filesystem::path checkpoint = format::checkpoint_at(asked.checkpoint);
  const std::optional<recipe::Recipe> stored =
      stored_recipe(checkpoint, catalog_of_flag(asked.worker));
  if (stored) recipe::check_labels_images(checkpoint.string(), *stored);
}

}  // namespace

// The arguments are checked when a callback runs; the worker parses them again.

void add_eval_command(CLI::App& app, const std::vector<std::string>& words, int& exit_status) {
  const auto asked = std::make_shared<recipe::EvaluationRequest>();
  CLI::App* const command = app.add_subcommand("eval", "Measure a checkpoint on a held-out set");
  recipe::add_evaluation_flags(*command, *asked);
  command->callback([asked, &words, &exit_status] {
    exit_status = run_worker(worker_of_flag("eval", asked->worker), asked->nproc, words,
                             [&asked] { check_request(*asked); });
  });
}

void add_predict_command(CLI::App& app, const std::vector<std::string>& words, int& exit_status) {
  const auto asked = std::make_shared<recipe::PredictionRequest>();
  CLI::App* const command = app.add_subcommand("predict", "Classify images with a checkpoint");
  recipe::add_prediction_flags(*command, *asked);
  command->callback([asked, &words, &exit_status] {
    exit_status = run_worker(worker_of_flag("predict", asked->worker), asked->nproc, words,
                             [&asked] { check_request(*asked); });
  });
}

}  // namespace scaletrain::launcher
