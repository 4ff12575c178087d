#include "lib/train/state/resume.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "lib/checkpoint/shard_reader.h"
#include "lib/core/disk/read_faults.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/text/json_text.h"
#include "lib/core/text/text.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/format/checkpoint/checkpoint_folder_names.h"
#include "lib/format/checkpoint/checkpoint_weights.h"
#include "lib/format/checkpoint/stored_tensors.h"
#include "lib/train/model/number_types.h"
#include "lib/train/rules/ranking.h"
#include "lib/train/rules/reproducible.h"
#include "lib/train/run/state_shards.h"

namespace scaletrain::train {
namespace {

void forget_best(format::TrainState& state) {
  const format::TrainState none;
  state.best_step = none.best_step;
  state.best_metric = none.best_metric;
}

// Keeps, of the best checkpoints so far, up to `most` that are in `folder`.
void keep_best_of(Run& run, const std::filesystem::path& folder, std::int64_t most) {
  std::vector<format::RankedStep> ranked = std::exchange(run.state.best_steps, {});
  if (run.state.best_step < 0) return;
  const std::string by = looked_at(run.recipe, run.recipe.checkpoint.best.metric);
  if (run.state.best_by != by) {
    if (run.group->rank() == 0) {
      core::warn(
          "the best checkpoint was chosen by {} and is now chosen by {}: the choice starts again",
          run.state.best_by, by);
    }
    return forget_best(run.state);
  }
  if (most == 0) return;
  // An earlier version did not store the list, nor did a run that kept no best checkpoint.
  if (ranked.empty() || ranked.front().step != run.state.best_step) {
    ranked.insert(ranked.begin(), {run.state.best_step, run.state.best_metric});
  }
  std::string found;  // "yn": the first is there, the second is not
  for (const format::RankedStep& one : ranked) {
    const bool looks = run.group->rank() == 0;
    const std::filesystem::path path = format::checkpoint_path(folder, one.step);
    found += looks && core::type_at(path) != std::filesystem::file_type::not_found ? 'y' : 'n';
  }
  found = run.group->broadcast_text(found, 0, "the best checkpoints");
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    const auto kept = static_cast<std::int64_t>(run.state.best_steps.size());
    if (found[i] == 'y' && kept < most) run.state.best_steps.push_back(ranked[i]);
  }
  if (found[0] == 'y') return;
  if (run.group->rank() == 0) {
    core::warn("{}: the best checkpoint is not in this run's folder: the choice starts again",
               format::checkpoint_path(folder, run.state.best_step).string());
  }
  if (run.state.best_steps.empty()) return forget_best(run.state);
  run.state.best_step = run.state.best_steps.front().step;
  run.state.best_metric = run.state.best_steps.front().metric;
}

// Broadcasts `found` of rank 0: other nodes may not have the folder.
bool rank_0_finds(const Run& run, bool found, const char* what) {
  return run.group->broadcast_text(found ? "yes" : "no", 0, what) == "yes";
}

// Sets run.is_saved, and keeps the best checkpoints that are in the run's folder; none for another
// folder, or if the run kept none before.
void look_into_folder(Run& run, const std::filesystem::path& checkpoint) {
  const std::filesystem::path folder = run.checkpoints();
  std::error_code ignored;
  run.is_saved =
      rank_0_finds(run, std::filesystem::equivalent(checkpoint.parent_path(), folder, ignored),
                   "the checkpoint's folder");
  keep_best_of(run, folder, run.recipe.checkpoint.keep_best);
}

// True if `checkpoint` has the state of the outer optimizer; a run with gradient all-reduce in each
// step has none.
bool has_outer_state(const Run& run, const std::filesystem::path& checkpoint) {
  if (!run.replicas->traits().has_outer_optimizer) return false;
  bool found = false;
  if (run.group->rank() == 0) {
    const format::StoredTensors stored(checkpoint / format::kOptimizerFile);
    found = std::ranges::any_of(stored.tensors(), [&](const format::TensorInfo& info) {
      return info.name.starts_with("outer_weights/");
    });
    if (!found) {
      core::warn("the checkpoint has no outer weights: they start from the model's weights");
    }
  }
  return rank_0_finds(run, found, "the outer weights");
}

// Returns the name by which rank 0 finds the average in `checkpoint`; "" if it is absent. If the
// first of several decays was changed, it continues from the first one of the checkpoint.
std::string name_in(const optim::MeanPlan& plan, const std::filesystem::path& checkpoint) {
  std::vector<std::string> names{plan.name};
  if (plan.decay) names.insert(names.begin(), fmt::format("ema:{}", *plan.decay));
  for (const std::string& name : names) {
    if (format::find_weights(checkpoint, name)) return name;
  }
  return "";
}

std::string ramp_text(const std::optional<core::BatchRamp>& ramp) {
  if (!ramp) return "the batch does not grow";
  return fmt::format("the batch grows from {} by {} over {} samples", ramp->start, ramp->increment,
                     ramp->samples);
}

// Restores an average; false if the checkpoint lacks it.
bool restore_mean(Run& run, const optim::Mean& mean, const std::filesystem::path& checkpoint,
                  bool same_ranks) {
  const bool reads = run.group->rank() == 0;
  const std::string name =
      run.group->broadcast_text(reads ? name_in(mean.plan(), checkpoint) : "", 0, "a mean's name");
  if (name.empty()) {
    if (reads) {
      core::warn("the checkpoint has no {}: it starts from the model's weights", mean.plan().name);
    }
    return false;
  }
  checkpoint::GroupReader(*run.group, read_by(run),
                          [&] { return format::weights_file(checkpoint, name); }, mean.state(),
                          {.casts_floats = true})
      .read([&run] { run.beat.enter(core::Phase::kStarting); });
  if (same_ranks) restore_ranks(*run.mesh, run.buffers_of(mean), checkpoint, name);
  return true;
}

}  // namespace

format::TrainState state_of_rank_0(dist::Group& group, const std::filesystem::path& checkpoint) {
  const std::string own =
      group.rank() == 0 ? format::render_state(format::read_state(checkpoint)) : "";
  return format::parse_state(group.broadcast_text(own, 0, "the checkpoint's state"),
                             (checkpoint / "state.json").string());
}

format::ClassNames classes_of_rank_0(dist::Group& group, const std::filesystem::path& checkpoint) {
  std::vector<std::string> own;
  if (group.rank() == 0) {
    own = format::read_class_names(checkpoint, format::read_manifest(checkpoint));
  }
  const std::string all =
      group.broadcast_text(core::json_text(nlohmann::json(own)), 0, "the checkpoint's classes");
  return {nlohmann::json::parse(all).get<std::vector<std::string>>(), "the checkpoint"};
}

std::vector<std::int64_t> numbers_of(const std::optional<core::BatchRamp>& ramp) {
  if (!ramp) return {};
  return {ramp->start, ramp->increment, ramp->samples};
}

void restore(Run& run, const std::filesystem::path& checkpoint) {
  if (run.state.global_batch != run.batch.global) {
    throw core::RecipeError(
        "/batch",
        fmt::format("the global batch is {}, the checkpoint's was {}", run.batch.global,
                    run.state.global_batch),
        fmt::format("start {} (--nproc), as it had, or set {{\"global\": {}, "
                    "\"per_device\": N}} with N a divisor for {}",
                    core::counted(run.state.world_size, "rank"), run.state.global_batch,
                    core::counted(run.group->world_size(), "rank")));
  }
  if (run.state.batch_ramp != numbers_of(run.batch.ramp)) {
    throw core::RecipeError(
        "/batch/ramp",
        fmt::format("{}, and in the checkpoint's run {}", ramp_text(run.batch.ramp),
                    ramp_text(format::ramp_of(run.state))),
        "use that ramp: the number of samples of each step depends on it");
  }
  const bool has_outer = has_outer_state(run, checkpoint);
  units::Shards parameters = model_shards(run);
  units::Shards state = optimizer_shards(run, parameters, has_outer);
  const auto reader_of = [&](const char* file, units::Shards shards) {
    return checkpoint::GroupReader(
        *run.group, read_by(run), [&checkpoint, file] { return checkpoint / file; },
        std::move(shards));
  };
  // Both are compared before anything is changed.
  checkpoint::GroupReader model = reader_of(format::kModelFile, std::move(parameters));
  checkpoint::GroupReader optimizer = reader_of(format::kOptimizerFile, std::move(state));
  const auto progress = [&run] { run.beat.enter(core::Phase::kStarting); };
  model.read(progress);
  optimizer.read(progress);
  if (is_sharded(run)) run.engine->weights_changed();
  run.learner.optimizer->resume_at(run.state.step);
  if (has_outer) run.replicas->resume();
  restore_scaler(run.state.scaler, *run.learner.precision);
  look_into_folder(run, checkpoint);
}

void restore_means(Run& run, const std::optional<std::filesystem::path>& checkpoint,
                   bool same_ranks) {
  bool has_ema = false, has_swa = false;
  for (const auto& mean : run.means) {
    const bool is_ema = mean->plan().decay.has_value();
    const std::int64_t updates = is_ema ? run.state.ema_updates : run.state.swa_updates;
    if (!checkpoint || (!is_ema && updates == 0)) continue;
    const bool is_there = restore_mean(run, *mean, *checkpoint, same_ranks);
    bool& has_one = is_ema ? has_ema : has_swa;
    has_one = has_one || is_there;
  }
  if (!has_ema) run.state.ema_updates = 0;
  if (!has_swa) run.state.swa_updates = 0;
  for (const auto& mean : run.means) {
    mean->restore(mean->plan().decay ? run.state.ema_updates : run.state.swa_updates);
  }
}

void warn_of_differences(const Run& run, const format::TrainState& was) {
  const std::vector<std::string> changed = differences(was, run.state);
  if (!changed.empty()) {
    core::warn("the resumed run is not bit for bit equal: {}", fmt::join(changed, "; "));
  }
  if (was.set_samples == 0 || run.recipe.data.samples_per_epoch > 0) return;
  const std::int64_t before = was.set_samples / run.batch.global;
  if (before != run.length.steps_per_epoch) {
    core::warn("{}", describe_change(run.length, run.state, before));
  }
}

}  // namespace scaletrain::train
