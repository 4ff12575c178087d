#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "launcher/commands/checkpoint_average.h"
#include "launcher/commands/checkpoint_diff.h"
#include "launcher/commands/checkpoint_export.h"
#include "launcher/commands/checkpoint_import.h"
#include "launcher/commands/checkpoint_keep.h"
#include "launcher/commands/checkpoint_reshard.h"
#include "launcher/commands/commands.h"
#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/core/text/json_text.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/format/checkpoint/stored_tensors.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kNone = "has no checkpoint";
constexpr const char* kNoneRemedy = "name a run's folder, its checkpoints folder or one checkpoint";

struct CheckpointArguments {
  std::string path;
  bool as_json = false;
};

void add_arguments(CLI::App& command, CheckpointArguments& arguments) {
  command.add_option("path", arguments.path, "Checkpoint, run folder, or its `latest` or `best`.")
      ->required()
      ->type_name("CHECKPOINT");
  command.add_flag("--json", arguments.as_json, "Print one JSON object instead of text.");
}

// Names in a file may hold bytes that are not UTF-8 or that would change the terminal.
std::string dump(const Json& json) { return core::json_text(json, 1) + "\n"; }

Json describe_tensors(const fs::path& checkpoint, const format::Manifest& manifest) {
  Json tensors = Json::array();
  for (const std::string& file : format::tensor_files(manifest)) {
    const format::StoredTensors opened(checkpoint / file);
    for (const format::TensorInfo& tensor : opened.tensors()) {
      tensors.push_back({{"name", tensor.name},
                         {"dtype", tensor.dtype},
                         {"shape", tensor.shape},
                         {"bytes", tensor.end - tensor.begin},
                         {"file", file}});
    }
  }
  return tensors;
}

Json describe_checkpoint(const fs::path& checkpoint, const format::Manifest& manifest) {
  const format::TrainState state = format::read_state(checkpoint);
  Json files = Json::array();
  for (const auto& [name, entry] : manifest.files) {
    files.push_back(
        {{"name", name}, {"bytes", entry.bytes}, {format::sum_key(entry.kind), entry.sum}});
  }
  return {{"path", checkpoint.string()},
          {"program", manifest.program},
          {"format", manifest.format},
          {"step", manifest.step},
          {"epoch", state.epoch},
          {"world_size", state.world_size},
          {"best_metric", state.best_metric},
          {"best_step", state.best_step},
          {"model_digest", format::model_digest(checkpoint)},
          {"tensors", describe_tensors(checkpoint, manifest)},
          {"files", files}};
}

// Description of a checkpoint as readable text.
std::string as_text(const Json& checkpoint, const format::FileEntries& files) {
  std::string text;
  for (const char* key : {"path", "program", "step", "epoch", "world_size", "model_digest"}) {
    const Json& value = checkpoint.at(key);
    const std::string shown = value.is_string() ? value.get<std::string>() : value.dump();
    text += fmt::format("{:<14}{}\n", key, core::printable(shown));
  }
  text += "\nfiles\n";
  for (const auto& [name, entry] : files) {
    text += fmt::format("  {:>13}  {}  {}\n", entry.bytes, core::printable(entry.sum),
                        core::printable(name));
  }
  text += "\ntensors\n";
  for (const Json& tensor : checkpoint.at("tensors")) {
    text += fmt::format(
        "  {:<5} {:<20} {}: {}\n", core::printable(tensor.at("dtype").get<std::string>()),
        tensor.at("shape").dump(), core::printable(tensor.at("file").get<std::string>()),
        core::printable(tensor.at("name").get<std::string>()));
  }
  return text;
}

void inspect(const CheckpointArguments& arguments) {
  const fs::path path = format::checkpoint_at(arguments.path);
  const format::Manifest manifest = format::read_manifest(path);
  const Json found = describe_checkpoint(path, manifest);
  std::fputs((arguments.as_json ? dump(found) : as_text(found, manifest.files)).c_str(), stdout);
}

core::ExitCode verify(const CheckpointArguments& arguments) {
  const format::CheckpointsAt found = format::checkpoints_at(arguments.path);
  if (found.folders.empty()) {
    const bool is_there = fs::exists(arguments.path);
    throw core::CheckpointError(arguments.path, is_there ? kNone : "does not exist", kNoneRemedy);
  }
  Json checkpoints = Json::array();
  std::string text;
  auto status = core::ExitCode::kOk;
  for (const fs::path& folder : found.folders) {
    Json checkpoint = {{"path", folder.string()}, {"whole", true}};
    try {
      checkpoint["step"] = format::check_checkpoint(folder).step;
      text += fmt::format("whole    {}\n", core::printable(folder.string()));
    } catch (const core::Error& error) {
      // An unreadable checkpoint may still be complete; damage is worse.
      const bool damaged = error.exit_code() == core::ExitCode::kData;
      if (damaged || status == core::ExitCode::kOk) status = error.exit_code();
      checkpoint["whole"] = false;
      checkpoint["error"] = error.what();
      text += fmt::format("{:<8} {}\n         {}: {}\n", damaged ? "damaged" : "unread",
                          core::printable(folder.string()), core::printable(error.place()),
                          core::printable(error.found()));
    }
    checkpoints.push_back(std::move(checkpoint));
  }
  const std::string json =
      dump({{"whole", status == core::ExitCode::kOk}, {"checkpoints", checkpoints}});
  std::fputs((arguments.as_json ? json : text).c_str(), stdout);
  return status;
}

}  // namespace

void add_checkpoint_commands(CLI::App& app, const std::vector<std::string>& words,
                             int& exit_status) {
  CLI::App* const checkpoint = app.add_subcommand(
      "checkpoint", "Inspect, verify, compare, average, export or import checkpoints");
  checkpoint->require_subcommand(1);
  const auto arguments = std::make_shared<CheckpointArguments>();

  CLI::App* const inspecting = checkpoint->add_subcommand(
      "inspect", "show step, model digest, tensors and files of a checkpoint");
  add_arguments(*inspecting, *arguments);
  inspecting->callback([arguments, &exit_status] {
    inspect(*arguments);
    exit_status = 0;
  });

  CLI::App* const verifying = checkpoint->add_subcommand(
      "verify",
      "verify the checksums and contents of one checkpoint, or of all checkpoints of a run");
  add_arguments(*verifying, *arguments);
  verifying->callback(
      [arguments, &exit_status] { exit_status = static_cast<int>(verify(*arguments)); });
  add_checkpoint_diff(*checkpoint, exit_status);
  add_checkpoint_average(*checkpoint, exit_status);
  add_checkpoint_export(*checkpoint, exit_status);
  add_checkpoint_import(*checkpoint, words);
  add_checkpoint_keep(*checkpoint, exit_status);
  add_checkpoint_reshard(*checkpoint, exit_status);
}

}  // namespace scaletrain::launcher
