#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <memory>
#include <string>
#include <vector>

#include "launcher/commands/commands.h"
#include "launcher/commands/worker_ranks.h"
#include "launcher/jobs/checks/worker_program.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/recipe/generation.h"

namespace scaletrain::launcher {

void add_generate_command(CLI::App& app, const std::vector<std::string>& words, int& exit_status) {
  const auto asked = std::make_shared<recipe::Generation>();
  CLI::App* const command =
      app.add_subcommand("generate", "Generate text with a language model's checkpoint");
  recipe::add_generation_flags(*command, *asked);
  // The arguments have been checked; the worker parses them again.
  command->callback([asked, &words, &exit_status] {
    exit_status = run_worker(worker_of_flag("generate", asked->worker), asked->nproc, words,
                             [&asked] { format::checkpoint_at(asked->checkpoint); });
  });
}

}  // namespace scaletrain::launcher
