#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "lib/core/error.h"
#include "lib/core/parallel.h"
#include "lib/core/printable.h"
#include "lib/core/text/text.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/format/checkpoint/checkpoint_folder_names.h"
#include "lib/format/checkpoint/checkpoint_weights.h"
#include "lib/format/checkpoint/stored_tensors.h"
#include "lib/format/checkpoint/train_state_check.h"
#include "lib/format/json_fields.h"
#include "lib/format/tensor_values.h"

namespace scaletrain::format {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDiverged =
    "training had diverged when it was saved: use an earlier checkpoint, and a lower learning rate";

std::string quoted(const std::string& name) { return fmt::format("\"{}\"", core::printable(name)); }

TrainState read_state_of(const fs::path& checkpoint, const Manifest& manifest) {
  const fs::path path = checkpoint / kStateFile;
  TrainState state = parse_state(read_listed_file(checkpoint, manifest, kStateFile), path.string());
  const auto compare = [&](std::int64_t step, const std::string& whose) {
    if (step == state.step) return;
    throw core::CheckpointError(path.string() + ": /step",
                                fmt::format("is {}, and {} says {}", state.step, whose, step),
                                kOtherCheckpoint);
  };
  compare(manifest.step, kManifestName);
  const std::string folder = name_of(checkpoint);
  if (const auto step = step_of_name(folder)) compare(*step, "the folder's name " + folder);
  return state;
}

// Checks the step recorded beside the tensors, if the writer has recorded one.
void check_noted_step(const fs::path& path, const StoredTensors& file, const TrainState& state) {
  const auto noted = file.metadata().find("step");
  if (noted == file.metadata().end() || noted->second == std::to_string(state.step)) return;
  throw core::CheckpointError(path.string(),
                              fmt::format("holds tensors of step {}, and {} says {}",
                                          quoted(noted->second), kStateFile, state.step),
                              kOtherCheckpoint);
}

void check_values(const fs::path& path, const StoredTensors& file, NotFinite what) {
  constexpr std::int64_t kPiece = 1 << 20;
  core::for_each_index(std::ssize(file.tensors()), kReaders, [&](std::int64_t i) {
    const TensorInfo& tensor = file.tensors()[static_cast<std::size_t>(i)];
    std::vector<std::byte> buffer(
        static_cast<std::size_t>(std::min(kPiece, tensor.end - tensor.begin)));
    const std::int64_t bytes = tensor.end - tensor.begin;
    for (std::int64_t offset = 0; offset < bytes; offset += kPiece) {
      const auto piece =
          std::span(buffer).first(static_cast<std::size_t>(std::min(kPiece, bytes - offset)));
      file.read(tensor, piece, offset);
      const auto found = find_not_finite(tensor.dtype, piece, what);
      if (!found) continue;
      throw core::CheckpointError(
          path.string(),
          fmt::format("the tensor {} is not finite at its element {}", quoted(tensor.name),
                      offset / dtype_bytes(tensor.dtype) + *found),
          kDiverged);
    }
  });
}

// The value of a tensor with one element; nullopt for any other.
std::optional<double> value_of(const StoredTensors& file, const TensorInfo& tensor) {
  std::array<std::byte, sizeof(double)> buffer{};
  const std::int64_t bytes = tensor.end - tensor.begin;
  if (bytes > std::ssize(buffer)) return std::nullopt;
  const auto value = std::span(buffer).first(static_cast<std::size_t>(bytes));
  file.read(tensor, value);
  return scalar_value(tensor.dtype, value);
}

void check_model(const fs::path& path, const StoredTensors& file) {
  for (const TensorInfo& tensor : file.tensors()) {
    if (!tensor.name.ends_with("num_batches_tracked")) continue;
    const auto count = value_of(file, tensor);
    if (!count || *count >= 0) continue;
    throw core::CheckpointError(path.string(),
                                fmt::format("the count {} is {}", quoted(tensor.name), *count),
                                kOtherCheckpoint);
  }
}

// "step" and "step/PARAMETER" count the updates; a float counts to 2^24.
void check_updates(const fs::path& path, const StoredTensors& file, const TensorInfo& tensor,
                   const TrainState& state) {
  constexpr std::int64_t kMostCounted = 1 << 24;
  const std::int64_t expected = state.step - state.skipped_steps;
  const auto found = value_of(file, tensor);
  if (!found || expected > kMostCounted || *found == static_cast<double>(expected)) return;
  throw core::CheckpointError(
      path.string(),
      fmt::format("the tensor {} counts {} updates, and {} says {} ({} steps, {} left out)",
                  quoted(tensor.name), *found, kStateFile, expected, state.step,
                  state.skipped_steps),
      kOtherCheckpoint);
}

void check_optimizer(const fs::path& path, const StoredTensors& file, const TrainState& state,
                     const std::set<std::string>& parameters) {
  for (const TensorInfo& tensor : file.tensors()) {
    const std::size_t slash = tensor.name.find('/');
    if (tensor.name.substr(0, slash) == "step") check_updates(path, file, tensor, state);
    if (slash == std::string::npos || parameters.contains(tensor.name.substr(slash + 1))) continue;
    throw core::CheckpointError(
        path.string(),
        fmt::format("the tensor {} belongs to no tensor of {}", quoted(tensor.name), kModelFile),
        kOtherCheckpoint);
  }
}

// The names of its tensors.
std::set<std::string> check_weights(const fs::path& path, const TrainState& state) {
  const StoredTensors file(path);
  check_noted_step(path, file, state);
  check_model(path, file);
  check_values(path, file, NotFinite::kNanOrInfinite);
  std::set<std::string> names;
  for (const TensorInfo& tensor : file.tensors()) names.insert(tensor.name);
  return names;
}

void check_tensors(const fs::path& checkpoint, const TrainState& state, const Manifest& manifest) {
  const std::set<std::string> parameters = check_weights(checkpoint / kModelFile, state);
  for (const std::string& name : tensor_files(manifest)) {
    if (!is_mean_file(name) || check_weights(checkpoint / name, state) == parameters) continue;
    throw core::CheckpointError((checkpoint / name).string(),
                                fmt::format("has other tensors than {}", kModelFile),
                                kOtherCheckpoint);
  }
  const fs::path path = checkpoint / kOptimizerFile;
  const StoredTensors file(path);
  check_noted_step(path, file, state);
  check_optimizer(path, file, state, parameters);
  // Squared averages may overflow in a run that continues.
  check_values(path, file, NotFinite::kNan);
}

}  // namespace

std::vector<std::string> read_class_names(const fs::path& checkpoint, const Manifest& manifest) {
  if (!manifest.files.contains(kClassesFile)) return {};
  const std::string text = read_listed_file(checkpoint, manifest, kClassesFile);
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  std::vector<std::string> names;
  bool sound = json.is_array();
  for (const nlohmann::json& name : json) {
    sound = sound && name.is_string();
    if (sound) names.push_back(name.get<std::string>());
  }
  if (sound) return names;
  throw core::CheckpointError((checkpoint / kClassesFile).string(), "is not a list of names",
                              kOtherCheckpoint);
}

TrainState read_state(const fs::path& checkpoint) {
  return read_state_of(checkpoint, read_manifest(checkpoint));
}

Manifest check_checkpoint(const fs::path& checkpoint) {
  Manifest manifest = verify_checkpoint(checkpoint);
  const TrainState state = read_state_of(checkpoint, manifest);
  require_listed(checkpoint, manifest, kClassesFile);
  static_cast<void>(read_class_names(checkpoint, manifest));
  const std::string recipe = (checkpoint / kRecipeFile).string();
  check_not_past_end(state,
                     parse_object(read_listed_file(checkpoint, manifest, kRecipeFile), recipe),
                     (checkpoint / kStateFile).string());
  for (const char* name : {kModelFile, kOptimizerFile}) {
    if (!manifest.tensors.contains(name)) require_listed(checkpoint, manifest, name);
  }
  check_tensors(checkpoint, state, manifest);
  return manifest;
}

}  // namespace scaletrain::format
