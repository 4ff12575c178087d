#include "launcher/commands/overfit.h"

#include <fmt/format.h>

#include <algorithm>

#include "launcher/commands/trial_recipe.h"
#include "launcher/runs/run_metrics.h"
#include "launcher/runs/run_record.h"
#include "launcher/runs/run_state.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/printable.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::launcher {
namespace {

constexpr std::int64_t kSteps = 200, kLogEvery = 10;
constexpr double kNearZero = 0.05;  // of the first loss
constexpr const char* kFolderEnding = "-overfit";

void limit_data(std::int64_t samples, recipe::Data& data) {
  if (!data.train.sources.empty()) {
    const recipe::Source first = data.train.sources.front();
    data.train = first;
  }
  if (!data.train.tokens.empty()) {
    throw core::UsageError("--overfit",
                           "the training set is token files, from which no samples are selected",
                           "tokenize one short text and launch a copy of the recipe with it");
  }
  data.train.limit = samples;
  data.train.augment.clear();
  data.train.balanced = false;
  data.train.repeats = 1;
  data.order = "indexed";
}

// The largest micro-batch within the recipe's that divides a rank's share.
std::int64_t micro_batch(std::int64_t share, std::int64_t most) {
  std::int64_t size = most > 0 ? std::min(most, share) : share;
  while (share % size != 0) --size;
  return size;
}

void remove_regularization(recipe::Recipe& recipe) {
  recipe.mix.reset();
  recipe.loss.label_smoothing = 0;
  for (const char* name : {"dropout", "drop_path"}) {
    const auto option = recipe.model.options.find(name);
    if (option != recipe.model.options.end()) option->second = 0.0;
  }
}

// True if the folder holds an earlier wiring test: its recipe is one that make_overfit() changed.
bool is_wiring_test(const std::filesystem::path& folder) {
  if (!is_run(folder)) return false;
  const RunJson recipe = read_run(folder, folder.string()).recipe;
  const RunJson::json_pointer limit("/data/train/limit"), validation("/data/val");
  return folder.string().ends_with(kFolderEnding) && recipe.contains(limit) &&
         recipe[limit].is_number() &&
         (!recipe.contains(validation) || recipe[validation].is_null());
}

}  // namespace

void make_overfit(std::int64_t samples, int ranks, recipe::Recipe& recipe) {
  if (samples % ranks != 0) {
    throw core::UsageError(
        "--overfit", fmt::format("{} samples cannot be divided among {} ranks", samples, ranks),
        fmt::format("give a multiple of {}", ranks));
  }
  limit_data(samples, recipe.data);
  remove_regularization(recipe);
  make_trial(kSteps, kLogEvery, recipe);
  recipe.batch = {.per_device = micro_batch(samples / ranks, recipe.batch.per_device),
                  .accumulate = std::nullopt,
                  .global = samples,
                  .memory_mb = recipe.batch.memory_mb};
  recipe.output += kFolderEnding;
}

void replace_wiring_test(const std::filesystem::path& run) {
  if (!is_wiring_test(run)) return;
  const std::string shown = core::printable(run.string());
  if (run_state(run).state == "running") {
    throw core::UsageError("--overfit", "another --overfit check is running in " + shown,
                           "wait until it has ended");
  }
  core::system_disk().remove_all(run);
  core::log("{}: replaces the earlier --overfit check", shown);
}

int judge_overfit(const std::filesystem::path& run) {
  const RunCurve loss = train_curve(read_metrics(run), "loss");
  if (loss.empty()) {
    throw core::DataError(core::printable((run / "metrics.jsonl").string()), "has no loss",
                          "look into the logs of the run folder");
  }
  const auto [first_step, first] = loss.front();
  const auto [last_step, last] = loss.back();
  if (last <= kNearZero * first) {
    core::log("overfit: the loss fell from {:.4g} to {:.4g} in {} steps: the model can learn",
              first, last, last_step);
    return 0;
  }
  core::log(
      "overfit: the loss fell from {:.4g} to {:.4g} only in {} steps, not below {:.4g}. Usual "
      "causes:\n"
      "  the learning rate is too low or too high: --set optimizer.lr=X\n"
      "  labels do not belong to their images: scaletrain data ls SHARDS\n"
      "  too many parameters are frozen: model.freeze, model.linear_probe\n"
      "  the model is too small, or there are too many samples for {} steps: a smaller --overfit",
      first, last, last_step, kNearZero * first, last_step);
  return 1;
}

}  // namespace scaletrain::launcher
