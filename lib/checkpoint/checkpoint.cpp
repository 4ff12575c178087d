#include "lib/checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "lib/checkpoint/tensors.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/version.h"
#include "lib/format/checkpoint_folder.h"
#include "lib/format/checkpoint_folder_links.h"
#include "lib/format/checkpoint_folder_names.h"
#include "lib/format/checkpoint_folder_remove.h"
#include "lib/format/checkpoint_weights.h"
#include "lib/format/json_fields.h"

namespace scaletrain::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolder = "checkpoints";
constexpr const char* kModel = format::kModelFile;
constexpr const char* kBuffers = "buffers.safetensors";
constexpr const char* kOptimizer = format::kOptimizerFile;
constexpr const char* kState = format::kStateFile;
constexpr const char* kClasses = format::kClassesFile;
constexpr const char* kRecipe = format::kRecipeFile;
constexpr std::int64_t kMaxJsonBytes = 16 << 20;

std::string read_text(const fs::path& path) {
  return core::read_file(path, kMaxJsonBytes, core::ExitCode::kData);
}

// Of a mean's file: "ema_buffers.safetensors".
std::string buffers_beside(const fs::path& mean) {
  return fmt::format("{}_{}", mean.stem().string(), kBuffers);
}

// nullopt where the folder cannot be listed: what was saved is saved, and nothing is removed.
std::optional<format::Survey> survey_or_warn(const fs::path& checkpoints) {
  try {
    format::Survey survey = format::survey_checkpoints(checkpoints);
    for (const auto& [step, why] : survey.unread) {
      core::warn("{}; the checkpoint of step {} is kept, as nobody knows what it is worth", why,
                 step);
    }
    return survey;
  } catch (const core::Error& error) {
    core::warn("{}: {}; no earlier checkpoint is removed", error.place(), error.found());
    return std::nullopt;
  }
}

}  // namespace

Written write(core::Disk& disk, const fs::path& run, const Contents& contents) {
  const HostTensors model(contents.model), optimizer(contents.optimizer);
  std::map<std::string, HostTensors> others;
  others.emplace(kBuffers, HostTensors(contents.buffers));
  for (const auto& [name, mean] : contents.means) {
    const std::string file = format::mean_file(name);
    others.emplace(file, HostTensors(mean.tensors))
        .first->second.refuse(format::NotFinite::kNanOrInfinite, contents.state.step);
    others.emplace(buffers_beside(file), HostTensors(mean.buffers));
  }
  const std::string state = format::render_state(contents.state);
  const std::string classes = nlohmann::json(contents.classes).dump() + "\n";
  const std::int64_t step = contents.state.step;
  model.refuse(format::NotFinite::kNanOrInfinite, step);
  optimizer.refuse(format::NotFinite::kNan, step);
  Written written;
  const auto write_files = [&](const fs::path& folder) {
    format::FileEntries entries{
        {kModel, model.write(disk, folder / kModel, step)},
        {kOptimizer, optimizer.write(disk, folder / kOptimizer, step)},
        {kState, format::write_hashed(disk, folder / kState, state)},
        {kClasses, format::write_hashed(disk, folder / kClasses, classes)},
        {kRecipe, format::write_hashed(disk, folder / kRecipe, contents.recipe)},
    };
    for (const auto& [name, tensors] : others) {
      if (tensors.bytes() > 0) entries.emplace(name, tensors.write(disk, folder / name, step));
    }
    written.bytes = 0;
    for (const auto& [name, entry] : entries) written.bytes += entry.bytes;
    return entries;
  };
  std::int64_t bytes = model.bytes() + optimizer.bytes();
  for (const auto& [name, tensors] : others) bytes += tensors.bytes();
  written.path = format::publish_checkpoint(
      disk, run / kFolder, {.program = std::string("scaletrain ") + core::version(), .step = step},
      bytes, write_files);
  return written;
}

void settle(core::Disk& disk, const fs::path& run, std::int64_t step,
            const format::Retention& retention) {
  const fs::path checkpoints = run / kFolder;
  const std::optional<format::Survey> survey = survey_or_warn(checkpoints);
  if (!survey) return;
  format::point_links(disk, checkpoints, *survey, step);
  format::retain_checkpoints(disk, checkpoints, *survey, step, retention);
}

fs::path save(core::Disk& disk, const fs::path& run, const Contents& contents,
              const format::Retention& retention) {
  fs::path path = write(disk, run, contents).path;
  settle(disk, run, contents.state.step, retention);
  return path;
}

void load(const fs::path& checkpoint, Contents& contents, const Progress& progress) {
  // Everything is compared before anything is changed.
  const TensorSource model(checkpoint / kModel, contents.model);
  const TensorSource optimizer(checkpoint / kOptimizer, contents.optimizer);
  contents.state = read_state(checkpoint);
  contents.classes = format::read_class_names(checkpoint, format::read_manifest(checkpoint));
  contents.recipe = read_text(checkpoint / kRecipe);
  model.copy_to(contents.model, progress);
  optimizer.copy_to(contents.optimizer, progress);
}

void load_model(const fs::path& checkpoint, Tensors& tensors, const Progress& progress,
                std::string_view weights) {
  const TensorSource source(format::weights_file(checkpoint, weights), tensors,
                            Types::kAnyFloating);
  source.copy_to(tensors, progress);
}

void load_buffers(const fs::path& checkpoint, std::map<std::string, at::Tensor>& tensors,
                  std::string_view weights) {
  const fs::path path =
      checkpoint /
      (weights == "model" ? kBuffers : buffers_beside(format::weights_file(checkpoint, weights)));
  if (format::has_tensors(path)) TensorSource(path, tensors).copy_to(tensors);
}

}  // namespace scaletrain::checkpoint
