#include "launcher/commands/launch_command.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>

#include "launcher/commands/commands.h"
#include "launcher/commands/overfit.h"
#include "launcher/flags/launch_options.h"
#include "launcher/flags/rdzv_conf.h"
#include "launcher/flags/values.h"
#include "launcher/jobs/checks/launch_checks.h"
#include "launcher/jobs/foreign_job.h"
#include "launcher/jobs/nodes/nodes_job.h"
#include "launcher/jobs/recipe_job.h"
#include "launcher/place/slurm_step.h"
#include "launcher/plan/finished_runs.h"
#include "launcher/platform/open_files.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/text/help_text.h"

namespace scaletrain::launcher {
namespace {

constexpr std::int64_t kMostOverfit = 4096;

void refuse_for_programs(const LaunchOptions& options) {
  const auto refuse = [](const char* flag) {
    throw core::UsageError(flag, "is for recipes, and a program follows --", "leave it out");
  };
  if (!options.path.empty()) {
    throw core::UsageError("launch", "a recipe and a program after --", "give one of them");
  }
  if (!options.set.empty()) refuse("--set");
  if (!options.resume.empty()) refuse("--resume");
  if (!options.allow.empty()) refuse("--allow");
  if (!options.worker.empty()) refuse("--worker");
  if (options.overfit > 0) refuse("--overfit");
}

void refuse_for_overfit(const LaunchOptions& options, const Placement& placement) {
  if (!options.resume.empty()) {
    throw core::UsageError("--overfit", "starts a new run, so it does not go with --resume",
                           "leave one out");
  }
  if (placement.nnodes > 1) {
    throw core::UsageError("--overfit", "runs on one node", "leave --nnodes out");
  }
}

void refuse_for_recipes(const LaunchOptions& options) {
  const LaunchOptions unset;
  const auto refuse = [](const char* flag, const char* remedy) {
    throw core::UsageError(flag, "is for programs after --", remedy);
  };
  constexpr const char* kLogs =
      "the logs of a recipe are in its output folder: --set output=FOLDER";
  if (options.log_dir != unset.log_dir) refuse("--log-dir", kLogs);
  if (options.redirects != unset.redirects) refuse("--redirects", kLogs);
  if (options.tee != unset.tee) refuse("--tee", kLogs);
  if (options.local_ranks_filter != unset.local_ranks_filter) refuse("--local-ranks-filter", kLogs);
  if (options.ranks_filter != unset.ranks_filter) refuse("--ranks-filter", kLogs);
  constexpr const char* kLeaveOut = "leave it out: a recipe's workers do not read it";
  if (options.role != unset.role) refuse("--role", kLeaveOut);
  if (options.run_id != unset.run_id) refuse("--rdzv-id", kLeaveOut);
  if (options.signals != unset.signals) refuse("--signals-to-handle", kLeaveOut);
  if (options.virtual_local_rank) refuse("--virtual-local-rank", kLeaveOut);
  if (options.beat_from_start) refuse("--beat-from-start", kLeaveOut);
  for (const std::string& flag : given_flags(options.rare)) refuse(flag.c_str(), kLeaveOut);
}

}  // namespace

LaunchOptions with_open_address(LaunchOptions options) {
  const bool is_fixed =
      options.rdzv_backend == "static" && options.nnodes.find(':') == std::string::npos;
  const bool is_given =
      !options.master_addr.empty() || !options.rdzv_endpoint.empty() || options.standalone;
  const bool is_one = options.nnodes.empty() || options.nnodes == "1";
  if (is_fixed && !is_given && !is_one) options.master_addr = kOpenAddress;
  return options;
}

void check_launch_flags(const LaunchOptions& options) {
  if (options.program.empty()) {
    refuse_for_recipes(options);
  } else {
    refuse_for_programs(options);
  }
  parse_duration("--grace", options.grace);
  hang_timeout(options, kProgramHangTimeout);
  restart_limits(options.agents, options.max_restarts);
  AgentOptions agents = options.agents;
  apply_rdzv_conf(parse_rdzv_conf(options.rdzv_conf), agents);
  agent_timing(agents);
}

int run_launched(const Job& job, const Placement& placement, const LaunchOptions& options) {
  const RestartLimits restarts = restart_limits(options.agents, options.max_restarts);
  AgentOptions agents = options.agents;
  apply_rdzv_conf(parse_rdzv_conf(options.rdzv_conf), agents);
  const AgentTiming timing = agent_timing(agents);
  const std::chrono::milliseconds grace = parse_duration("--grace", options.grace);
  if (placement.nnodes == 1) return run_job(job, placement, restarts, grace);
  const char* const token = std::getenv("SCALETRAIN_JOB_TOKEN");
  return run_job_on_nodes(job, placement,
                          {.timing = timing,
                           .restarts = restarts,
                           .grace = grace,
                           .nnodes = placement.nnodes_text(),
                           .token = token != nullptr ? token : ""});
}

namespace {

int launch_program(const LaunchOptions& options) {
  refuse_for_programs(options);
  for (const std::string& note : check_rare_flags(options.rare)) core::log("{}", note);
  const Placement placement = resolve_placement(options, slurm_step());
  if (!placement.fixed_ranks && !options.ranks_filter.empty()) {
    throw core::UsageError("--ranks-filter",
                           "needs fixed ranks, but the ranks of this node may change",
                           "use --local-ranks-filter");
  }
  ForeignJob job(options, placement);
  return run_launched(job.job(), placement, options);
}

}  // namespace

int launch_recipe(const LaunchOptions& options, bool resume_command) {
  refuse_for_recipes(options);
  if (!resume_command) refuse_program_as_recipe(options.path);
  const Placement placement = resolve_placement(options, slurm_step());
  provide_open_files(placement.world_size());
  RunRequest request = resume_command ? run_to_resume(options) : run_to_launch(options);
  if (options.overfit > 0) {
    refuse_for_overfit(options, placement);
    make_overfit(options.overfit, placement.world_size(), request.recipe);
    replace_wiring_test(request.recipe.output);
  }
  const std::string run = request.recipe.output;
  RecipeJob job(std::move(request), placement, options);
  if (const std::optional<int> status = job.open_run_folder()) return *status;
  const int status = run_launched(job.job(), placement, options);
  const bool has_folder = placement.nnodes == 1 || placement.hosts_store();
  if (status == 0 && has_folder && options.overfit == 0) {
    note_finished_run(finished_runs_file(), run);
  }
  return status == 0 && options.overfit > 0 ? judge_overfit(run) : status;
}

void add_recipe_flags(CLI::App& command, LaunchOptions& options) {
  const core::FlagGroup group(command, kRecipeFlags);
  command
      .add_option("--set", options.set,
                  "Overrides a key, for example optimizer.lr=0.01. Repeatable.")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command
      .add_option("--allow", options.allow,
                  "Allows a key to differ from the resumed run, for example steps. Repeatable.")
      ->type_name("KEY")
      ->allow_extra_args(false);
  command
      .add_option("--worker", options.worker,
                  "A worker program of your own, with its models. Default: scaletrain-worker.")
      ->take_last();
}

void declare_launch(CLI::App& launch, LaunchOptions& options) {
  add_launch_flags(launch, options);
  add_recipe_flags(launch, options);
  add_program_flags(launch, options);
  const core::FlagGroup group(launch, kRecipeFlags);
  launch
      .add_option("--resume", options.resume,
                  "Checkpoint to continue from: its path, or auto for the newest one of the run, "
                  "if there is one.")
      ->type_name("CHECKPOINT")
      ->take_last();
  launch
      .add_option(
          "--overfit", options.overfit,
          "Overfitting test of the recipe: trains on N fixed samples until the loss is near zero.")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{1}, kMostOverfit))
      ->take_last();
  launch.add_option("RECIPE", options.path, "Recipe file to run.");
}

namespace {

struct DryRunFlags {
  bool is_given = false, as_json = false;
};

void add_dry_run_flags(CLI::App& launch, DryRunFlags& flags) {
  const core::FlagGroup group(launch, kRecipeFlags);
  launch.add_flag("--dry-run", flags.is_given,
                  "Make every check of a launch, build the model on simulated ranks and print the "
                  "outline of the run. Starts and writes nothing.");
  launch.add_flag("--json", flags.as_json, "With --dry-run: print one JSON object.");
}

void check_dry_run_flags(const DryRunFlags& flags, bool is_program) {
  if (flags.is_given && is_program) {
    throw core::UsageError("--dry-run", "is for recipes, and a program follows --", "leave it out");
  }
  if (flags.as_json && !flags.is_given) {
    throw core::UsageError("--json", "is for --dry-run", "leave it out, or add --dry-run");
  }
}

}  // namespace

void add_launch_commands(CLI::App& app, const std::optional<std::vector<std::string>>& program,
                         DryRun* dry_run, int& exit_status) {
  const auto launch_options = std::make_shared<LaunchOptions>();
  const auto dry_run_flags = std::make_shared<DryRunFlags>();
  CLI::App* const launch =
      app.add_subcommand("launch", "Run a recipe, or any program after --, in several processes");
  declare_launch(*launch, *launch_options);
  add_dry_run_flags(*launch, *dry_run_flags);
  launch->callback([launch_options, dry_run_flags, dry_run, &program, &exit_status] {
    check_dry_run_flags(*dry_run_flags, program.has_value());
    if (!program) {
      if (launch_options->path.empty()) {
        throw core::UsageError("launch", "nothing to run is given",
                               "scaletrain launch RECIPE, or scaletrain launch -- PROGRAM ARGS...");
      }
      exit_status = dry_run_flags->is_given ? dry_run(*launch_options, dry_run_flags->as_json)
                                            : launch_recipe(*launch_options, false);
      return;
    }
    if (program->empty()) {
      throw core::UsageError("launch", "no program follows --",
                             "scaletrain launch -- PROGRAM ARGS...");
    }
    launch_options->program = *program;
    exit_status = launch_program(*launch_options);
  });

  const auto resume_options = std::make_shared<LaunchOptions>();
  CLI::App* const resume = app.add_subcommand(
      "resume", "Continue a run from its newest checkpoint, or from one of them");
  add_launch_flags(*resume, *resume_options);
  add_recipe_flags(*resume, *resume_options);
  resume
      ->add_option("PATH", resume_options->path,
                   "Run folder, checkpoint, or latest; or s3://... of its mirror.")
      ->type_name("CHECKPOINT")
      ->required();
  resume->callback(
      [resume_options, &exit_status] { exit_status = launch_recipe(*resume_options, true); });
}

}  // namespace scaletrain::launcher
