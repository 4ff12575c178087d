#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <memory>
#include <string>
#include <vector>

#include "launcher/commands/commands.h"
#include "launcher/jobs/worker_program.h"
#include "launcher/platform/become.h"
#include "lib/recipe/generation.h"

namespace scaletrain::launcher {

void add_generate_command(CLI::App& app, const std::vector<std::string>& words) {
  const auto asked = std::make_shared<recipe::Generation>();
  CLI::App* const command =
      app.add_subcommand("generate", "Continue a text by a language model's checkpoint");
  recipe::add_generation_flags(*command, *asked);
  // What a person typed is checked by now, and read once more there.
  command->callback([asked, &words] { become(worker_of_flag("generate", asked->worker), words); });
}

}  // namespace scaletrain::launcher
