#include "launcher/commands/checkpoint_reshard.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "lib/core/disk/disk.h"
#include "lib/core/disk/read_faults.h"
#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/exchange/new_folder.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/format/checkpoint/whole_checkpoint.h"

namespace scaletrain::launcher {
namespace {

struct ReshardArguments {
  std::string checkpoint, output;
};

void reshard(const ReshardArguments& arguments) {
  if (core::type_at(arguments.output) != std::filesystem::file_type::not_found) {
    throw core::UsageError("--output", fmt::format("{} exists already", arguments.output),
                           "name a new folder");
  }
  const std::filesystem::path checkpoint = format::checkpoint_at(arguments.checkpoint);
  const std::size_t pieces = format::piece_files(format::read_manifest(checkpoint)).size();
  core::Disk& disk = core::system_disk();
  exchange::publish_folder(
      disk, arguments.output, /*replaces=*/false,
      [&](const std::filesystem::path& folder) { format::write_whole(disk, checkpoint, folder); });
  std::printf("%s: %s in whole files, which had %zu files of pieces\n",
              core::printable(arguments.output).c_str(),
              core::printable(checkpoint.string()).c_str(), pieces);
}

}  // namespace

void add_checkpoint_reshard(CLI::App& checkpoint, int& exit_status) {
  const auto arguments = std::make_shared<ReshardArguments>();
  CLI::App* const resharding = checkpoint.add_subcommand(
      "reshard", "merge a sharded checkpoint, which several ranks wrote, into full tensors");
  resharding
      ->add_option("CHECKPOINT", arguments->checkpoint,
                   "Checkpoint, run folder, or its `latest` or `best`.")
      ->required()
      ->type_name("CHECKPOINT");
  resharding->add_option("-o,--output", arguments->output, "New folder.")->required();
  resharding->callback([arguments, &exit_status] {
    reshard(*arguments);
    exit_status = 0;
  });
}

}  // namespace scaletrain::launcher
