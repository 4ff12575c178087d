#include "launcher/commands/dry_run/dry_run.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>

#include "launcher/commands/dry_run/outline_text.h"
#include "launcher/commands/dry_run/run_outline.h"
#include "launcher/commands/explain/layout_rows.h"
#include "launcher/commands/launch_command.h"
#include "launcher/commands/overfit.h"
#include "launcher/commands/plan/data_size.h"
#include "launcher/commands/plan/prediction.h"
#include "launcher/flags/launch_options.h"
#include "launcher/jobs/checks/launch_checks.h"
#include "launcher/jobs/checks/model_check.h"
#include "launcher/jobs/checks/run_request.h"
#include "launcher/jobs/checks/worker_program.h"
#include "launcher/jobs/recipe_job.h"
#include "launcher/place/placement.h"
#include "launcher/place/slurm_step.h"
#include "launcher/platform/gpus.h"
#include "lib/core/error.h"
#include "lib/core/text/json_text.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

// Constructing the job makes every check of a launch and writes nothing.
void check_as_launched(RunRequest request, const Placement& placement, const LaunchOptions& options,
                       RunOutline& outline) {
  if (request.recipe.device != "cpu" && count_gpus() == 0) {
    outline.notes.emplace_back("this machine has no GPU: the devices are not checked");
    request.recipe.device = "cpu";  // so that no device is needed
  }
  const RecipeJob job(std::move(request), placement, options);
}

// Free bytes where `output` is, or will be.
double free_bytes_at(fs::path output) {
  std::error_code error;
  while (!fs::exists(output, error) && output.has_relative_path()) output = output.parent_path();
  const fs::space_info space = fs::space(output, error);
  if (error) throw core::StorageError(output.string(), error.message(), "choose another output");
  return static_cast<double>(space.available);
}

// The layout with learning rates; null with a note if the worker cannot lay the recipe out.
nlohmann::ordered_json layout_of(const recipe::Recipe& recipe, const Placement& placement,
                                 RunOutline& outline) {
  std::vector<std::string> flags;
  if (outline.steps > 0) {
    flags = {"--steps", std::to_string(outline.steps), "--steps-per-epoch",
             std::to_string(outline.steps_per_epoch)};
  }
  try {
    return ask_layout(recipe, placement.world_size(), placement.nproc, flags);
  } catch (const core::UsageError& error) {
    outline.notes.push_back(
        fmt::format("memory, checkpoint size and learning rates are not known: {}", error.found()));
    return nullptr;
  }
}

}  // namespace

int dry_run(const LaunchOptions& given, bool as_json) {
  const LaunchOptions options = with_open_address(given);
  check_launch_flags(options);
  refuse_program_as_recipe(options.path);
  const Placement placement = resolve_placement(options, slurm_step());
  const int ranks = placement.world_size();
  RunRequest request = run_to_launch(options);
  if (options.overfit > 0) make_overfit(options.overfit, ranks, request.recipe);
  const recipe::Recipe recipe = request.recipe;

  RunOutline checked;
  check_as_launched(std::move(request), placement, options, checked);
  const int status = check_in_worker(recipe, options.path, overrides_of(options), ranks);
  if (status != 0) return status;

  RunOutline outline =
      outline_run(recipe, ranks, placement.nnodes, training_data_size(recipe).samples);
  outline.notes.insert(outline.notes.end(), checked.notes.begin(), checked.notes.end());
  outline.layout = layout_of(recipe, placement, outline);
  if (outline.layout.is_object()) {
    const PlanTarget target{.nproc = placement.nproc, .nodes = placement.nnodes};
    outline.checkpoint_bytes = predict(recipe, target, outline.layout).saves.bytes;
  }
  outline.free_bytes = free_bytes_at(recipe.output);
  check_space(outline);
  const bool has_host_state = recipe.device != "cpu" && recipe.offload;
  const std::string text =
      as_json ? core::json_text(outline_json(outline), 2) + "\n"
              : outline_text(outline, has_host_state ? *recipe.offload : recipe::Offload());
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace scaletrain::launcher
