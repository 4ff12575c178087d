#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/commands/commands.h"
#include "launcher/commands/launch_command.h"
#include "launcher/jobs/foreign_job.h"
#include "launcher/jobs/run_request.h"
#include "launcher/jobs/worker_program.h"
#include "launcher/place/placement.h"
#include "launcher/platform/become.h"
#include "lib/core/cores.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/format/checkpoint_folder.h"
#include "lib/recipe/evaluation.h"
#include "lib/recipe/load.h"

namespace scaletrain::launcher {
namespace {

// What every rank would refuse is reported once, before there is any.
void check_request(const recipe::EvaluationRequest& asked) {
  const auto checkpoint = format::find_checkpoint(
      asked.checkpoint, [](const std::string& damage) { core::warn("{}", damage); });
  if (!checkpoint) {
    throw core::CheckpointError(asked.checkpoint, "there is no checkpoint in it",
                                "name a run's folder, its checkpoints folder or one checkpoint");
  }
  const recipe::CatalogPtr catalog = catalog_of_flag(asked.worker);
  const std::optional<recipe::Recipe> stored = stored_recipe(*checkpoint, catalog);
  if (!stored) return;
  const recipe::Recipe recipe = recipe::parse_recipe(
      recipe::to_json(*stored), (*checkpoint / "recipe.json").string(),
      recipe::overrides_of(asked, recipe::reads_tokens(stored->model)), catalog);
  recipe::set_of(asked, recipe.data);
}

// Each rank is the worker with the same words; rank 0 prints.
int run_ranks(const std::string& worker, const std::string& nproc,
              const std::vector<std::string>& words) {
  LaunchOptions options;
  options.nproc = nproc;
  options.program = {worker};
  options.program.insert(options.program.end(), words.begin(), words.end());
  const Placement placement = resolve_placement(options);
  if (placement.nproc > 1) {
    // Its share of the cores, as a recipe's workers get; a person's own value holds.
    const std::int64_t share = std::max(core::usable_cores() / placement.nproc, 1);
    setenv("OMP_NUM_THREADS", std::to_string(share).c_str(), /*overwrite=*/0);
  }
  ForeignJob job(options, placement);
  return run_launched(job.job(), placement, options);
}

}  // namespace

void add_eval_command(CLI::App& app, const std::vector<std::string>& words, int& exit_status) {
  const auto asked = std::make_shared<recipe::EvaluationRequest>();
  CLI::App* const command = app.add_subcommand("eval", "Measure a checkpoint on a held-out set");
  recipe::add_evaluation_flags(*command, *asked);
  // What a person typed is checked by now, and read once more there.
  command->callback([asked, &words, &exit_status] {
    const std::string worker = worker_of_flag("eval", asked->worker);
    if (asked->nproc == "1") become(worker, words);
    check_request(*asked);
    exit_status = run_ranks(worker, asked->nproc, words);
  });
}

void add_predict_command(CLI::App& app, const std::vector<std::string>& words) {
  const auto asked = std::make_shared<recipe::PredictionRequest>();
  CLI::App* const command = app.add_subcommand("predict", "Label images by a checkpoint");
  recipe::add_prediction_flags(*command, *asked);
  command->callback([asked, &words] { become(worker_of_flag("predict", asked->worker), words); });
}

}  // namespace scaletrain::launcher
