#include "launcher/commands/lint/lint_command.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "launcher/commands/lint/lint_text.h"
#include "launcher/commands/plan/data_size.h"
#include "launcher/flags/launch_options.h"
#include "launcher/jobs/checks/load_recipe_of_run.h"
#include "launcher/jobs/checks/worker_program.h"
#include "lib/core/text/json_text.h"
#include "lib/recipe/lint/lint.h"

namespace scaletrain::launcher {
namespace {

struct LintArguments {
  LaunchOptions recipe;  // path, --set, --worker
  int nproc = 0;         // 0: not given
  bool is_strict = false, as_json = false;
};

int lint_recipe(const LintArguments& arguments) {
  const recipe::Recipe recipe =
      load_recipe_of_run(arguments.recipe.path, overrides_of(arguments.recipe));
  const std::vector<recipe::LintFinding> findings = recipe::lint(
      recipe, {.ranks = arguments.nproc, .samples = training_data_size(recipe).samples});
  const std::string text = arguments.as_json
                               ? core::json_text(lint_json(recipe.name, findings), 2) + "\n"
                               : lint_text(recipe.name, findings);
  std::fputs(text.c_str(), stdout);
  return arguments.is_strict && !findings.empty() ? 1 : 0;
}

}  // namespace

void add_recipe_lint(CLI::App& recipe, int& exit_status) {
  constexpr int kMostRanks = 1 << 20;
  const auto arguments = std::make_shared<LintArguments>();
  CLI::App* const command = recipe.add_subcommand(
      "lint", "name settings of a valid recipe that are unusual and often a mistake");
  command->add_option("recipe", arguments->recipe.path, "Recipe file.")->required();
  command
      ->add_option("--set", arguments->recipe.set,
                   "Set a key of the recipe, for example optimizer.lr=0.1. Repeatable.")
      ->take_all()
      ->expected(1);
  command->add_option("--worker", arguments->recipe.worker,
                      "Path of a worker program of your own, with its models.");
  command
      ->add_option(
          "--nproc", arguments->nproc,
          "Number of ranks, for the global batch. Default: as many as one model replica needs.")
      ->check(CLI::Range(1, kMostRanks));
  command->add_flag("--strict", arguments->is_strict, "Exit with 1 if there is a finding.");
  command->add_flag("--json", arguments->as_json, "Print one JSON object instead of text.");
  command->callback([arguments, &exit_status] { exit_status = lint_recipe(*arguments); });
}

}  // namespace scaletrain::launcher
