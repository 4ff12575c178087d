#include "app/worker/model_command.h"

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "app/worker/torch_error.h"
#include "lib/core/text/command_line.h"
#include "lib/recipe/load.h"
#include "lib/train/simulate/model_check.h"

namespace scaletrain::app {

int run_model(int argc, char** argv, const Models& models) {
  CLI::App app("Build a recipe's model without data.", "scaletrain-worker model");
  std::string recipe_path;
  std::vector<std::string> overrides;
  int ranks = 1;
  app.add_option("--recipe", recipe_path, "the recipe")->required();
  app.add_option("--set", overrides, "KEY=VALUE, repeatable")->allow_extra_args(false);
  app.add_option("--ranks", ranks, "of the job")->required();
  if (!core::parse_command_line(app, {argv + 2, argv + argc})) return 0;
  return run_translated(0, [&] {
    train::check_model(recipe::load_recipe(recipe_path, overrides, models.catalog), ranks,
                       models.factories);
  });
}

}  // namespace scaletrain::app
