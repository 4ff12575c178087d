#include "launcher/commands/dry_run/run_outline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lib/core/error.h"
#include "lib/recipe/ranks.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::launcher {
namespace {

constexpr double kBytesOfGb = 1e9;

std::int64_t length_in_steps(const recipe::Duration& length, std::int64_t steps_per_epoch) {
  using LengthUnit = recipe::Duration::Unit;
  if (length.unit == LengthUnit::kSteps) return std::llround(length.value);
  if (length.unit != LengthUnit::kEpochs) return 0;
  return std::llround(length.value * static_cast<double>(steps_per_epoch));
}

// Counts the newest checkpoints, the best ones, permanently kept ones, and the one being written.
std::int64_t kept_at_once(const recipe::Recipe& recipe, const RunOutline& outline) {
  const recipe::Checkpoint& checkpoint = recipe.checkpoint;
  std::int64_t kept = checkpoint.keep_last + 1;
  if (recipe.data.val) kept += checkpoint.keep_best;
  if (checkpoint.keep_every) {
    kept += times_due(*checkpoint.keep_every, outline.steps, outline.steps_per_epoch).value_or(0);
  }
  return outline.saves ? std::min(kept, *outline.saves) : kept;
}

}  // namespace

std::optional<std::int64_t> times_due(const recipe::Duration& every, std::int64_t steps,
                                      std::int64_t steps_per_epoch) {
  using IntervalUnit = recipe::Duration::Unit;
  double period = every.value;
  if (every.unit == IntervalUnit::kEpochs) period *= static_cast<double>(steps_per_epoch);
  if (every.unit == IntervalUnit::kMinutes || steps <= 0 || period <= 0) return std::nullopt;
  // Intervals below one step are due with every step.
  const double count = std::min(static_cast<double>(steps), static_cast<double>(steps) / period);
  return static_cast<std::int64_t>(std::ceil(count));
}

RunOutline outline_run(const recipe::Recipe& recipe, int ranks, int nodes, std::int64_t samples) {
  RunOutline outline{.name = recipe.name, .output = recipe.output, .ranks = ranks, .nodes = nodes};
  outline.global_batch = recipe::plan_batch(recipe, ranks).global;
  if (outline.global_batch > 0) outline.steps_per_epoch = samples / outline.global_batch;
  outline.steps = length_in_steps(recipe.length, outline.steps_per_epoch);
  if (recipe.batch.ramp && recipe.length.unit != recipe::Duration::Unit::kSteps) {
    outline.notes.emplace_back("steps: those of the full batch; /batch/ramp adds some");
  }
  if (recipe.data.val || !recipe.data.extra.empty()) {
    outline.validations = times_due(recipe.validate_every, outline.steps, outline.steps_per_epoch);
  } else {
    outline.validations = 0;
  }
  if (!recipe.checkpoint.automatic) {
    outline.saves = times_due(recipe.checkpoint.every, outline.steps, outline.steps_per_epoch);
  }
  outline.kept = kept_at_once(recipe, outline);
  return outline;
}

void check_space(const RunOutline& outline) {
  const double needed = outline.checkpoint_bytes * static_cast<double>(outline.kept);
  if (needed <= outline.free_bytes) return;
  throw core::StorageError(
      outline.output,
      fmt::format("{} checkpoints of {:.3g} GB need {:.3g} GB, and {:.3g} GB are free",
                  outline.kept, outline.checkpoint_bytes / kBytesOfGb, needed / kBytesOfGb,
                  outline.free_bytes / kBytesOfGb),
      "use another folder: --set output=FOLDER, or keep fewer: --set checkpoint.keep_last=1");
}

}  // namespace scaletrain::launcher
