#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/commands/commands.h"
#include "launcher/platform/become.h"
#include "lib/core/error.h"
#include "lib/core/programs.h"
#include "lib/core/subprocess.h"
#include "lib/recipe/generation.h"

namespace scaletrain::launcher {
namespace {

std::string worker_of(const recipe::Generation& asked) {
  const std::string path =
      asked.worker.empty() ? core::program_beside_us("scaletrain-worker") : asked.worker;
  if (const std::optional<std::string> found = core::find_program(path)) return *found;
  throw core::UsageError("generate", fmt::format("\"{}\" is no executable file", path),
                         "build it: ninja -C build/release scaletrain-worker");
}

}  // namespace

void add_generate_command(CLI::App& app, const std::vector<std::string>& words) {
  const auto asked = std::make_shared<recipe::Generation>();
  CLI::App* const command =
      app.add_subcommand("generate", "Continue a text by a language model's checkpoint");
  recipe::add_generation_flags(*command, *asked);
  // What a person typed is checked by now, and read once more there.
  command->callback([asked, &words] { become(worker_of(*asked), words); });
}

}  // namespace scaletrain::launcher
