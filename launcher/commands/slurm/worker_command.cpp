#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <memory>

#include "launcher/commands/commands.h"
#include "launcher/commands/launch_command.h"
#include "launcher/flags/launch_options.h"
#include "launcher/jobs/recipe_job.h"
#include "launcher/place/task_placement.h"
#include "launcher/platform/gpus.h"
#include "lib/core/error.h"
#include "lib/core/process/cores.h"

namespace scaletrain::launcher {
namespace {

int run_task(const LaunchOptions& options) {
  const std::optional<SlurmStep> step = slurm_step();
  if (!step) {
    throw core::UsageError(
        "worker", "runs as one task of a Slurm step, and srun has not started it",
        "srun scaletrain worker RECIPE, or without Slurm: scaletrain launch RECIPE");
  }
  RunRequest request = run_to_launch(options);
  const TaskView view{.gpus = count_gpus(), .cpus = core::usable_cores()};
  const Placement placement = place_task(*step, view, request.recipe.device == "cpu");
  RecipeJob job(std::move(request), placement, options);
  if (const std::optional<int> status = job.open_run_folder()) return *status;
  return run_launched(job.job(), placement, options);
}

}  // namespace

void add_worker_command(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<LaunchOptions>();
  CLI::App* const worker = app.add_subcommand("worker", "Run one rank of a recipe as a Slurm task");
  add_recipe_flags(*worker, *options);
  worker
      ->add_option("--resume", options->resume,
                   "Checkpoint to continue from: its path, or auto for the newest one if any.")
      ->type_name("CHECKPOINT")
      ->take_last();
  add_supervision_flags(*worker, *options);
  worker->add_option("RECIPE", options->path, "Recipe file to run.")->required();
  worker->callback([options, &exit_status] { exit_status = run_task(*options); });
}

}  // namespace scaletrain::launcher
