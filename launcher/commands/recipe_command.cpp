#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "launcher/commands/commands.h"
#include "launcher/jobs/token_check.h"
#include "launcher/place/batch_check.h"
#include "lib/core/log.h"
#include "lib/recipe/idle_keys.h"
#include "lib/recipe/load.h"
#include "lib/recipe/sources.h"

namespace scaletrain::launcher {
namespace {

// The arguments of one subcommand; its callback holds them.
struct RecipeArguments {
  std::string path;
  std::vector<std::string> overrides;
  int nproc = 1;
};

void add_recipe_arguments(CLI::App& command, RecipeArguments& arguments) {
  command.add_option("recipe", arguments.path, "the recipe's file")->required();
  command
      .add_option("--set", arguments.overrides, "KEY=VALUE: changes one key, e.g. optimizer.lr=0.1")
      ->take_all()
      ->expected(1);
}

void check(const RecipeArguments& arguments) {
  const recipe::Recipe recipe = recipe::load_recipe(arguments.path, arguments.overrides);
  const recipe::BatchPlan plan = plan_batch(recipe, arguments.nproc);
  recipe::check_sources(recipe);
  check_tokens(recipe, arguments.nproc);
  for (const std::string& idle :
       recipe::idle_keys(recipe, recipe::key_origins(arguments.path, arguments.overrides))) {
    core::warn("{}", idle);
  }
  fmt::print("ok: {}: global batch {} = {} per device x {} accumulated x {} ranks\n", recipe.name,
             plan.global, plan.per_device, plan.accumulate, arguments.nproc);
}

}  // namespace

void add_recipe_commands(CLI::App& app, int& exit_status) {
  CLI::App* const recipe = app.add_subcommand("recipe", "Check a recipe, or explain recipes");
  recipe->require_subcommand(1);
  const auto arguments = std::make_shared<RecipeArguments>();

  CLI::App* const checking = recipe->add_subcommand(
      "check", "report every mistake of a recipe at once, and whether its files are there");
  add_recipe_arguments(*checking, *arguments);
  checking->add_option("--nproc", arguments->nproc, "number of ranks, for the batch plan")
      ->check(CLI::Range(1, 1 << 20));
  checking->callback([arguments, &exit_status] {
    check(*arguments);
    exit_status = 0;
  });

  CLI::App* const showing =
      recipe->add_subcommand("show", "print a recipe with every key and default");
  add_recipe_arguments(*showing, *arguments);
  showing->callback([arguments, &exit_status] {
    std::fputs(recipe::to_json(recipe::load_recipe(arguments->path, arguments->overrides)).c_str(),
               stdout);
    exit_status = 0;
  });

  recipe->add_subcommand("schema", "print the JSON Schema of recipes")->callback([&exit_status] {
    std::fputs(recipe::json_schema().c_str(), stdout);
    exit_status = 0;
  });
  recipe->add_subcommand("reference", "print the reference of all keys as Markdown")
      ->callback([&exit_status] {
        std::fputs(recipe::markdown_reference().c_str(), stdout);
        exit_status = 0;
      });
}

}  // namespace scaletrain::launcher
