#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "launcher/commands/commands.h"
#include "launcher/flags/launch_options.h"
#include "launcher/jobs/checks/launch_checks.h"
#include "launcher/jobs/checks/load_recipe_of_run.h"
#include "launcher/jobs/checks/model_check.h"
#include "launcher/jobs/checks/remote_sets.h"
#include "launcher/jobs/checks/worker_program.h"
#include "launcher/place/batch_check.h"
#include "lib/core/log.h"
#include "lib/core/printable.h"
#include "lib/recipe/idle_keys.h"
#include "lib/recipe/load.h"
#include "lib/recipe/ranks.h"

namespace scaletrain::launcher {
namespace {

// The arguments of one subcommand; its callback holds them.
struct RecipeArguments {
  LaunchOptions launch;  // its path, --set and --worker
  int nproc = 0;         // 0: not given
  bool builds = false;   // the model, in a worker
};

void add_worker_flag(CLI::App& command, RecipeArguments& arguments) {
  command.add_option("--worker", arguments.launch.worker,
                     "Path of a worker program of your own, with its models.");
}

void add_recipe_arguments(CLI::App& command, RecipeArguments& arguments,
                          bool needs_worker = false) {
  command.add_option("recipe", arguments.launch.path, "Recipe file.")->required();
  command
      .add_option("--set", arguments.launch.set,
                  "Set a key of the recipe, for example optimizer.lr=0.1. Repeatable.")
      ->take_all()
      ->expected(1);
  if (!needs_worker) add_worker_flag(command, arguments);
}

int check(const RecipeArguments& arguments) {
  const std::string& path = arguments.launch.path;
  const std::vector<std::string> overrides = overrides_of(arguments.launch);
  const recipe::Recipe recipe = with_remote_shards(load_recipe_of_run(path, overrides), path);
  const int ranks = arguments.nproc > 0 ? arguments.nproc : recipe::ranks_of_copy(recipe);
  const recipe::BatchPlan plan = plan_batch(recipe, ranks);
  check_data(recipe, ranks, Begins::kNow);
  if (const std::string warning = weights_warning_of(recipe); !warning.empty()) {
    core::warn("{}", warning);
  }
  for (const std::string& idle : recipe::idle_keys(recipe, recipe::key_origins(path, overrides))) {
    core::warn("{}", idle);
  }
  if (arguments.builds) {
    const int status = check_in_worker(recipe, path, overrides, ranks);
    if (status != 0) return status;
  }
  const std::string advice = recipe::batch_norm_advice(recipe.model, plan);
  if (!advice.empty()) core::warn("{}", advice);
  fmt::print("ok: {}: global batch {}\n", core::printable(recipe.name),
             batch_text(plan, ranks, " per device", " accumulated"));
  return 0;
}

}  // namespace

void add_recipe_commands(CLI::App& app, int& exit_status) {
  CLI::App* const recipe = app.add_subcommand("recipe", "Check, show and create recipes");
  recipe->require_subcommand(1);
  const auto arguments = std::make_shared<RecipeArguments>();

  CLI::App* const checking = recipe->add_subcommand(
      "check", "report every mistake of a recipe at once, and whether its files are there");
  add_recipe_arguments(*checking, *arguments, /*needs_worker=*/true);
  CLI::Option* const worker =
      checking
          ->add_option(
              "--worker", arguments->launch.worker,
              "Also build the model in a worker, without data. This finds, for example, patterns "
              "that match no parameter. VALUE is a worker program of your own, if you have one.")
          ->expected(0, 1);
  checking
      ->add_option(
          "--nproc", arguments->nproc,
          "Number of ranks, for the batch plan. Default: as many as one model replica needs.")
      ->check(CLI::Range(1, 1 << 20));
  checking->callback([arguments, worker, &exit_status] {
    arguments->builds = worker->count() > 0;
    exit_status = check(*arguments);
  });

  CLI::App* const showing =
      recipe->add_subcommand("show", "print a recipe with every key and default");
  add_recipe_arguments(*showing, *arguments);
  showing->callback([arguments, &exit_status] {
    const std::string& path = arguments->launch.path;
    const recipe::Recipe shown =
        with_remote_shards(load_recipe_of_run(path, overrides_of(arguments->launch)), path);
    std::fputs(recipe::to_json(shown).c_str(), stdout);
    exit_status = 0;
  });

  CLI::App* const schema = recipe->add_subcommand("schema", "print the JSON Schema of recipes");
  add_worker_flag(*schema, *arguments);
  schema->callback([arguments, &exit_status] {
    const recipe::CatalogPtr catalog = catalog_of_flag(arguments->launch.worker);
    std::fputs(recipe::json_schema(catalog).c_str(), stdout);
    exit_status = 0;
  });

  CLI::App* const reference =
      recipe->add_subcommand("reference", "print the reference of all keys as Markdown");
  add_worker_flag(*reference, *arguments);
  reference->callback([arguments, &exit_status] {
    const recipe::CatalogPtr catalog = catalog_of_flag(arguments->launch.worker);
    std::fputs(recipe::markdown_reference(catalog).c_str(), stdout);
    exit_status = 0;
  });

  recipe->add_subcommand("models", "print the page of all models as Markdown")
      ->callback([&exit_status] {
        std::fputs(recipe::markdown_models().c_str(), stdout);
        exit_status = 0;
      });
}

}  // namespace scaletrain::launcher
