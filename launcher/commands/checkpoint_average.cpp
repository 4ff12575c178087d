#include "launcher/commands/checkpoint_average.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/core/disk/disk.h"
#include "lib/core/disk/read_faults.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/printable.h"
#include "lib/exchange/known_tokenizer.h"
#include "lib/exchange/weights_classes.h"
#include "lib/format/tar/class_names.h"
#include "lib/format/weights/weight_average.h"
#include "lib/format/weights/weight_write.h"

namespace scaletrain::launcher {
namespace {

struct AverageArguments {
  std::vector<std::string> paths;
  std::string out;
};

// Whole or not at all: under another name first.
void publish_weights(const std::filesystem::path& out,
                     const std::vector<format::OwnedTensor>& tensors) {
  core::Disk& disk = core::system_disk();
  const std::filesystem::path temporary = fmt::format("{}.tmp.{}", out.string(), ::getpid());
  try {
    format::write_weights(disk, temporary, format::is_pytorch_name(out), tensors);
    disk.rename(temporary, out);
  } catch (const core::Error&) {
    disk.remove_all(temporary);
    throw;
  }
  disk.sync_folder(out.has_parent_path() ? out.parent_path() : ".");
}

// Averaging heads of different classes would give a useless model.
void check_same_classes(const std::vector<const format::WeightSet*>& sets,
                        const std::vector<std::string>& paths) {
  format::ClassNames first;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const std::vector<std::string> names = exchange::classes_of_weights(sets[i]->files());
    if (first.names.empty()) first = {names, paths[i]};
    if (names.empty() || names == first.names) continue;
    throw core::CheckpointError(
        core::printable(paths[i]),
        fmt::format("has the classes {}, and {} has {}", format::shown_classes(names),
                    core::printable(first.owner), format::shown_classes(first.names)),
        "average models of the same classes in the same order");
  }
}

// Averaging embeddings of different tokenizers likewise.
void check_same_tokenizers(const std::vector<const format::WeightSet*>& sets,
                           const std::vector<std::string>& paths) {
  std::optional<exchange::KnownTokenizer> first;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const auto found = exchange::tokenizer_of_weights(sets[i]->files(), "bytes");
    if (!first) first = found;
    if (!found || exchange::is_same_tokenizer(found->name, first->name)) continue;
    throw core::CheckpointError(
        core::printable(paths[i]),
        fmt::format("is of the tokenizer {}, and {} says {}", core::printable(found->name),
                    first->place, core::printable(first->name)),
        "average models of one tokenizer");
  }
}

void average(const AverageArguments& arguments) {
  if (core::type_at(arguments.out) != std::filesystem::file_type::not_found) {
    throw core::UsageError("--out", fmt::format("{} exists already", arguments.out),
                           "name a new file");
  }
  const auto report = [](const std::string& damage) { core::warn("{}", damage); };
  std::vector<std::unique_ptr<format::WeightSet>> sets;
  std::vector<const format::WeightSet*> shown;
  sets.reserve(arguments.paths.size());
  shown.reserve(arguments.paths.size());
  for (const std::string& path : arguments.paths) {
    sets.push_back(std::make_unique<format::WeightSet>(path, "", report));
    shown.push_back(sets.back().get());
  }
  check_same_classes(shown, arguments.paths);
  check_same_tokenizers(shown, arguments.paths);
  const std::vector<format::OwnedTensor> tensors = format::average_weights(shown);
  publish_weights(arguments.out, tensors);
  std::printf("%s: the mean of %zu models, %zu tensors\n", core::printable(arguments.out).c_str(),
              sets.size(), tensors.size());
}

}  // namespace

void add_checkpoint_average(CLI::App& checkpoint, int& exit_status) {
  const auto arguments = std::make_shared<AverageArguments>();
  CLI::App* const averaging =
      checkpoint.add_subcommand("average", "average the weights of several models into one file");
  averaging
      ->add_option("paths", arguments->paths,
                   "Checkpoints, run folders, safetensors or PyTorch files, or folders of Hugging "
                   "Face or timm. Integer tensors come from the first one.")
      ->type_name("CHECKPOINT")
      ->required()
      ->expected(2, -1);
  averaging
      ->add_option(
          "-o,--out", arguments->out,
          "Output file: a PyTorch file if it ends in .pt, .pth or .bin, otherwise safetensors.")
      ->required();
  averaging->callback([arguments, &exit_status] {
    average(*arguments);
    exit_status = 0;
  });
}

}  // namespace scaletrain::launcher
