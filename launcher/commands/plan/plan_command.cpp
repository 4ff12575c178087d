// `plan`: memory, time and cost of a recipe before it runs, the changes that make it cheaper, and
// the scores of predictions against finished runs.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "launcher/commands/commands.h"
#include "launcher/commands/plan/plan_text.h"
#include "launcher/commands/plan/prediction.h"
#include "launcher/commands/plan/probe.h"
#include "launcher/commands/plan/run_score.h"
#include "launcher/commands/plan/variants.h"
#include "launcher/flags/launch_options.h"
#include "launcher/jobs/checks/load_recipe_of_run.h"
#include "launcher/jobs/checks/worker_program.h"
#include "launcher/plan/finished_runs.h"
#include "launcher/plan/score.h"
#include "launcher/runs/open_runs.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/text/json_text.h"
#include "lib/observe/device_kinds.h"
#include "lib/recipe/load.h"

namespace scaletrain::launcher {
namespace {

struct PlanArguments {
  LaunchOptions recipe;  // path, --set, --worker
  PlanTarget target;
  std::string run;  // --check; "": plan a recipe
  bool probes = false, searches = false, json = false;
  int changes = 3, most = 24;
};

// How far predictions for the device were off in the runs that were scored on this machine.
std::string accuracy_of(const std::string& device) {
  std::vector<double> errors;
  for (const Score& score : read_scores(scores_file())) {
    if (score.device == device && score.step_s) errors.push_back(score.step_s->error());
  }
  const std::optional<ErrorSpread> spread = spread_of(std::move(errors));
  if (!spread) return fmt::format("no run on {} was scored yet", device);
  return fmt::format("+- {:.0f} % in 9 of 10 of {} scored", 100 * spread->most, spread->count);
}

// Plans a changed recipe; nullopt if it is refused, as `recipe check` or its worker would.
std::optional<Prediction> predict_changed(const std::string& text, const recipe::Recipe& recipe,
                                          const PlanTarget& target, const Variant& variant) {
  try {
    const recipe::Recipe changed =
        recipe::parse_recipe(text, recipe.name, variant.overrides, recipe.model.catalog);
    return predict(changed, target, ask_layout_of(changed, target));
  } catch (const core::RecipeError&) {
    return std::nullopt;
  } catch (const core::UsageError&) {
    return std::nullopt;
  }
}

void add_changes(const PlanArguments& arguments, const recipe::Recipe& recipe, PlanReport& report) {
  const auto shown = static_cast<std::size_t>(arguments.changes);
  if (shown == 0) return;
  const PlanTarget& target = arguments.target;
  const std::vector<Variant> variants = arguments.searches
                                            ? layout_variants(recipe, target.ranks(), target.nproc)
                                            : technique_variants(recipe, target.ranks());
  const auto most = static_cast<std::size_t>(arguments.most);
  core::log("comparing {} of {} changes", std::min(most, variants.size()), variants.size());
  const std::string text = recipe::to_json(recipe);
  // A probe measures the unchanged recipe, but changes are compared with its prediction.
  Prediction base = report.prediction;
  if (arguments.probes) base = predict(recipe, target, ask_layout_of(recipe, target));
  report.changes = rank_variants(variants, base, most, [&](const Variant& variant) {
    return predict_changed(text, recipe, target, variant);
  });
  if (report.changes.size() > shown) report.changes.resize(shown);
  report.heading = base.memory.fits() ? "cheaper or faster:" : "fits with one of these:";
  if (arguments.searches) report.heading = "layouts by step time:";
}

void print(const PlanReport& report, bool json) {
  const std::string text = json ? core::json_text(plan_json(report), 2) + "\n" : plan_text(report);
  std::fputs(text.c_str(), stdout);
}

int plan_recipe(const PlanArguments& arguments) {
  const recipe::Recipe recipe =
      load_recipe_of_run(arguments.recipe.path, overrides_of(arguments.recipe));
  ProbedStep probed;
  if (arguments.probes) probed = probe_step(recipe, arguments.target);
  const nlohmann::ordered_json layout = ask_layout_of(recipe, arguments.target);
  PlanReport report{.target = arguments.target,
                    .prediction = predict(recipe, arguments.target, layout, probed),
                    .accuracy = arguments.probes ? "measured on this machine"
                                                 : accuracy_of(arguments.target.device)};
  add_changes(arguments, recipe, report);
  print(report, arguments.json);
  return report.prediction.memory.fits() || report.prediction.memory.capacity <= 0 ? 0 : 1;
}

// Predicts what `run` measured, and keeps the score.
Score score_and_keep(const RunRecord& run, const PlanTarget& target) {
  const recipe::Recipe recipe = recipe_of_run(run);
  Score score = score_run(run, target, predict(recipe, target, ask_layout_of(recipe, target)));
  if (const auto file = scores_file(); !file.empty()) append_score(file, score);
  return score;
}

int check_run(const PlanArguments& arguments) {
  const OpenRuns runs({arguments.run});
  const RunRecord& run = runs.all().front();
  const Score score = score_and_keep(run, target_of_run(run, arguments.target.device));
  const std::string text =
      arguments.json ? core::json_text(score_json(score), 2) + "\n" : score_text(score);
  std::fputs(text.c_str(), stdout);
  return 0;
}

int run_plan(const PlanArguments& arguments) {
  if (!arguments.target.is_cpu()) observe::device_kind(arguments.target.device);
  if (!arguments.run.empty()) return check_run(arguments);
  if (arguments.recipe.path.empty()) {
    throw core::UsageError("plan", "no recipe is given",
                           "scaletrain plan [flags] RECIPE, or scaletrain plan --check RUN");
  }
  return plan_recipe(arguments);
}

void declare_target(CLI::App& command, PlanTarget& target) {
  constexpr int kMostRanks = 100000;
  const CLI::Validator is_rate = CLI::Range(1e-6, 1e9);
  command
      .add_option("--device", target.device,
                  "Device to plan for: cpu is this machine, otherwise a GPU such as h100 or a100.")
      ->capture_default_str();
  command.add_option("--nproc", target.nproc, "Number of ranks on each node, one for each device.")
      ->check(CLI::Range(1, kMostRanks))
      ->capture_default_str();
  command.add_option("--nodes,--nnodes", target.nodes, "Number of nodes.")
      ->check(CLI::Range(1, kMostRanks))
      ->capture_default_str();
  command
      .add_option("--network-gbs", target.network_gb_s,
                  "Bandwidth of a device to other nodes in GB/s, in one direction.")
      ->check(is_rate)
      ->capture_default_str();
  command
      .add_option("--storage-gbs", target.storage_gb_s,
                  "Rate at which the storage takes a checkpoint in GB/s.")
      ->check(is_rate)
      ->capture_default_str();
  command
      .add_option("--price", target.price,
                  "Price of a device and hour, in any currency. Default: cost.price.")
      ->check(CLI::NonNegativeNumber);
  command
      .add_option("--kwh-price", target.price_of_kwh, "Price of a kWh. Default: cost.kwh_price.")
      ->check(CLI::NonNegativeNumber);
}

// Scores the runs that finished on this machine since the last call.
void score_finished_runs() {
  constexpr std::size_t kMost = 20;  // a prediction takes some seconds
  const std::vector<Score> known = read_scores(scores_file());
  for (const std::string& folder : unscored_runs(finished_runs_file(), known, kMost)) {
    try {
      const RunRecord run = read_run(folder, folder);
      const std::string device = device_of_run(run);
      if (device.empty()) continue;
      core::log("scoring the prediction for {}", folder);
      score_and_keep(run, target_of_run(run, device));
    } catch (const core::Error& error) {
      core::warn("{}: no score: {}: {}", folder, error.place(), error.found());
    }
  }
}

void add_scores(CLI::App& command, int& exit_status) {
  CLI::App* const scores = command.add_subcommand(
      "scores",
      "Score the runs that finished on this machine, and print how far predictions were off.");
  scores->callback([&exit_status] {
    score_finished_runs();
    const std::vector<Score> all = read_scores(scores_file());
    const std::string text =
        all.empty() ? "no run was scored yet: scaletrain plan --check RUN\n" : scores_text(all);
    std::fputs(text.c_str(), stdout);
    exit_status = 0;
  });
}

}  // namespace

void add_plan_command(CLI::App& app, int& exit_status) {
  constexpr int kMostChanges = 100000;
  const auto arguments = std::make_shared<PlanArguments>();
  CLI::App* const command = app.add_subcommand(
      "plan", "Predict memory, time and cost of a recipe on devices that you need not have");
  command->add_option("RECIPE", arguments->recipe.path, "Recipe to plan.");
  declare_target(*command, arguments->target);
  command->add_flag("--probe", arguments->probes,
                    "Measure memory and speed of a few steps on this machine, with --nproc ranks, "
                    "and plan with them.");
  command->add_flag("--search", arguments->searches,
                    "Rank parallel layouts by step time, instead of single changes.");
  command
      ->add_option("--changes", arguments->changes,
                   "Number of changes to show that make the recipe fit or faster; 0: none.")
      ->check(CLI::Range(0, kMostChanges))
      ->capture_default_str();
  command
      ->add_option("--most", arguments->most,
                   "Number of changes or layouts to predict, those with least communication first.")
      ->check(CLI::Range(1, kMostChanges))
      ->capture_default_str();
  command
      ->add_option("--check", arguments->run,
                   "Score the prediction for a finished run, and keep the score.")
      ->type_name("RUN");
  command
      ->add_option("--set", arguments->recipe.set,
                   "Set a key of the recipe, for example batch.per_device=8. Repeatable.")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command->add_option("--worker", arguments->recipe.worker,
                      "Path of a worker program of your own, with its models.");
  command->add_flag("--json", arguments->json, "Print one JSON object instead of text.");
  add_scores(*command, exit_status);
  command->callback([command, arguments, &exit_status] {
    if (command->get_subcommands().empty()) exit_status = run_plan(*arguments);
  });
}

}  // namespace scaletrain::launcher
