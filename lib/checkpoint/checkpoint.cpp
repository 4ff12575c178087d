#include "lib/checkpoint/checkpoint.h"

#include <algorithm>
#include <system_error>

#include "lib/checkpoint/state.h"
#include "lib/checkpoint/tensors.h"
#include "lib/core/error.h"
#include "lib/core/version.h"
#include "lib/format/checkpoint_folder.h"
#include "lib/format/json_fields.h"

namespace scaletrain::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModel = "model.safetensors";
constexpr const char* kOptimizer = "optimizer.safetensors";
constexpr const char* kState = "state.json";
constexpr const char* kClasses = "classes.json";
constexpr const char* kRecipe = "recipe.json";
constexpr std::int64_t kMaxJsonBytes = 16 << 20;

std::string read_text(const fs::path& path) {
  return core::read_file(path, kMaxJsonBytes, core::ExitCode::kData);
}

// The steps of the checkpoints that were the best of their time, ascending. The best metric only
// rises, so the last of them is the best and the ones before are the next best on record.
std::vector<std::int64_t> best_steps(const fs::path& checkpoints) {
  std::vector<std::int64_t> steps;
  for (const std::int64_t step : format::list_checkpoints(checkpoints)) {
    try {
      if (read_state(format::checkpoint_path(checkpoints, step)).best_step == step) {
        steps.push_back(step);
      }
    } catch (const core::Error&) {
      continue;  // a damaged one is nobody's best
    }
  }
  return steps;
}

// Costs a sync only when the link changes.
void point_link(core::Disk& disk, const fs::path& link, std::int64_t step) {
  const fs::path target = format::checkpoint_name(step);
  std::error_code absent;
  if (fs::read_symlink(link, absent) != target) core::replace_link(disk, target, link);
}

}  // namespace

fs::path save(core::Disk& disk, const fs::path& run, const Contents& contents,
              std::int64_t keep_last, std::int64_t keep_best) {
  const HostTensors model(contents.model), optimizer(contents.optimizer);
  const std::string state = render_state(contents.state);
  const std::string classes = nlohmann::json(contents.classes).dump() + "\n";
  const std::int64_t step = contents.state.step;
  const auto write_files = [&](const fs::path& folder) {
    return format::FileEntries{
        {kModel, model.write(disk, folder / kModel)},
        {kOptimizer, optimizer.write(disk, folder / kOptimizer)},
        {kState, format::write_hashed(disk, folder / kState, state)},
        {kClasses, format::write_hashed(disk, folder / kClasses, classes)},
        {kRecipe, format::write_hashed(disk, folder / kRecipe, contents.recipe)},
    };
  };
  const fs::path checkpoints = run / "checkpoints";
  fs::path path = format::publish_checkpoint(
      disk, checkpoints, {.program = std::string("scaletrain ") + core::version(), .step = step},
      model.bytes() + optimizer.bytes(), write_files);

  std::vector<std::int64_t> bests = best_steps(checkpoints);
  bests.erase(std::upper_bound(bests.begin(), bests.end(), step), bests.end());
  point_link(disk, checkpoints / "latest", step);
  if (bests.empty()) {
    disk.remove_all(checkpoints / "best");  // training went back behind it
  } else {
    point_link(disk, checkpoints / "best", bests.back());
  }
  const auto kept = std::min<std::int64_t>(keep_best, static_cast<std::int64_t>(bests.size()));
  format::retain_checkpoints(disk, checkpoints, step, keep_last, {bests.end() - kept, bests.end()});
  return path;
}

void load(const fs::path& checkpoint, Contents& contents) {
  // Everything is compared before anything is changed.
  const TensorSource model(checkpoint / kModel, contents.model);
  const TensorSource optimizer(checkpoint / kOptimizer, contents.optimizer);
  contents.state = read_state(checkpoint);
  const std::string classes = read_text(checkpoint / kClasses);
  try {
    contents.classes = nlohmann::json::parse(classes).get<std::vector<std::string>>();
  } catch (const nlohmann::json::exception&) {
    throw core::CheckpointError((checkpoint / kClasses).string(), "is not a list of names",
                                "use another checkpoint");
  }
  contents.recipe = read_text(checkpoint / kRecipe);
  model.copy_to(contents.model);
  optimizer.copy_to(contents.optimizer);
}

void load_model(const fs::path& checkpoint, std::map<std::string, at::Tensor>& tensors) {
  TensorSource(checkpoint / kModel, tensors).copy_to(tensors);
}

TrainState read_state(const fs::path& checkpoint) {
  const fs::path path = checkpoint / kState;
  return parse_state(read_text(path), path.string());
}

}  // namespace scaletrain::checkpoint
