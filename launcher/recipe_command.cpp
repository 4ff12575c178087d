#include "launcher/recipe_command.h"

namespace scaletrain::launcher {

void add_recipe_commands(CLI::App& app, int& exit_status) {
  (void)app;
  (void)exit_status;
}

}  // namespace scaletrain::launcher
