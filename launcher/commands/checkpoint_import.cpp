#include "launcher/commands/checkpoint_import.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <memory>

#include "launcher/jobs/checks/worker_program.h"
#include "launcher/platform/become.h"
#include "lib/exchange/import_flags.h"

namespace scaletrain::launcher {

void add_checkpoint_import(CLI::App& checkpoint, const std::vector<std::string>& words) {
  const auto request = std::make_shared<exchange::ImportRequest>();
  CLI::App* const importing = checkpoint.add_subcommand(
      "import", "import weights of timm, torchvision, Hugging Face or PyTorch as a checkpoint");
  exchange::add_import_flags(*importing, *request);
  // The arguments have been checked; the worker parses them again.
  importing->callback([request, &words] {
    become(worker_of_flag("checkpoint import", request->worker), {words.begin() + 1, words.end()});
  });
}

}  // namespace scaletrain::launcher
