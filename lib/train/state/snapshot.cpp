#include "lib/train/state/snapshot.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "lib/checkpoint/shard_reader.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/format/checkpoint/checkpoint_folder_names.h"
#include "lib/format/checkpoint/checkpoint_weights.h"
#include "lib/recipe/load.h"
#include "lib/train/model/mean_plan.h"
#include "lib/train/model/number_types.h"
#include "lib/train/run/stages.h"
#include "lib/train/run/state_shards.h"
#include "lib/train/state/evaluation_weights.h"
#include "lib/train/state/rank_state.h"
#include "lib/train/state/replica_states.h"
#include "lib/train/state/reshard.h"

namespace scaletrain::train {
namespace {

// A damaged checkpoint costs the test of the best model, not the days of training before it.
bool is_sound(const std::filesystem::path& best) {
  try {
    format::check_checkpoint(best);
    return true;
  } catch (const core::Error& error) {
    if (error.exit_code() != core::ExitCode::kData) throw;  // it may be read the next time
    core::warn("{}: {}; the last model is tested, not the best", error.place(), error.found());
    return false;
  }
}

// True if a snapshot refers to the run's own tensors. Others that are as large as the model are
// copied at once, since they take a device's memory until then.
bool stands(const Run& run) {
  const bool is_gathered = !run.learner.parts.empty() && !is_sharded(run);
  return !is_gathered && !run.replicas->weights_differ() && !run.learner.has_evaluation_weights();
}

// Fills the files of a snapshot.
class Files {
 public:
  Files(Run& run, checkpoint::Contents& contents)
      : run_(run), contents_(contents), shards_(model_shards(run)) {}

  void add_model() {
    const NamedTensors evaluated = evaluated_tensors(run_);
    add_weights(format::kModelFile, shards_, evaluated, buffers_of_data_ranks(run_));
  }

  void add_mean(const optim::Mean& mean) {
    dist::Group& ranks = run_.mesh->data();
    const NamedTensors buffers = run_.buffers_of(mean), averaged = mean_over_ranks(ranks, buffers);
    add_weights(format::mean_file(mean.plan().name), mean.state(), averaged,
                gather_ranks(ranks, buffers));
  }

  void add_optimizer() {
    add(format::kOptimizerFile, Kind::kOptimizer, optimizer_shards(run_, shards_, /*outer=*/true));
  }

 private:
  using Kind = checkpoint::TensorFile::Kind;

  // Adds `weights` with `replaced` in place of theirs, and the buffers of each data-parallel rank.
  void add_weights(const std::string& file, units::Shards weights, const NamedTensors& replaced,
                   const NamedTensors& of_data_ranks) {
    for (const auto& [name, tensor] : replaced) weights.at(name).tensor = tensor;
    NamedTensors buffers;
    for (const auto& [name, buffer] : run_.learner.buffers()) {
      at::Tensor& tensor = weights.at(name).tensor;
      tensor = tensor.clone();  // the next forward changes it
      buffers.emplace(name, tensor);
    }
    share_buffers(run_, buffers);
    add(file, Kind::kWeights, std::move(weights));
    share_buffers(run_, of_data_ranks);
    if (of_data_ranks.empty()) return;
    contents_.file(checkpoint::buffers_file(file), Kind::kPerRank).shards =
        units::full_shards(of_data_ranks);
  }

  // A sharded model is written by its first replica.
  void add(const std::string& name, Kind kind, units::Shards shards) {
    checkpoint::TensorFile& file = contents_.file(name, kind);
    std::erase_if(shards, [](const auto& one) { return !one.second.is_here(); });
    if (!is_sharded(run_)) {
      if (!run_.learner.parts.empty()) {
        shards = gather_full(run_.mesh->group(core::Axis::kTensor), shards);
      }
      file.shards = std::move(shards);
      return;
    }
    dist::Group& model = run_.mesh->model();
    file.part = checkpoint::part_name(name, model.rank(), model.world_size());
    for (const auto& [tensor, shard] : shards) {
      file.bytes_of_all += model.world_size() * static_cast<std::int64_t>(shard.tensor.nbytes());
    }
    if (!run_.mesh->plan().writes(run_.mesh->rank())) return;
    if (!run_.learner.parts.empty()) shards = merge_slices(model, shards);
    file.shards = std::move(shards);
  }

  Run& run_;
  checkpoint::Contents& contents_;
  units::Shards shards_;
};

}  // namespace

checkpoint::Contents snapshot(Run& run) {
  run.sets.training_set.gather(*run.group, run.state);
  checkpoint::Contents contents;
  contents.stands = stands(run);
  Files files(run, contents);
  files.add_model();
  for (const auto& mean : run.means) {
    if (has_begun(mean->plan(), run.state)) files.add_mean(*mean);
  }
  files.add_optimizer();
  add_rank_state(run, contents);
  contents.state = run.state;
  contents.state.schedule = {{"step", run.state.step}, {"lr", run.lr()}};
  contents.state.scaler = scaler_state(*run.learner.precision);
  contents.state.random = {{"seed", fmt::format("{:016x}", run.recipe.seed)},
                           {"step", run.state.step}};
  contents.state.bucket_layout = run.placement->layout();
  contents.classes = run.sets.train.set->classes();
  contents.recipe = recipe::to_json(run.recipe);
  return contents;
}

std::optional<format::TrainState> load_best_model(Run& run) {
  run.replicas->forget_states();  // they belong to another model
  run.learner.end_training(local_tensors(model_shards(run)));
  const std::filesystem::path best =
      format::checkpoint_path(run.checkpoints(), run.state.best_step);
  std::optional<format::TrainState> at_hand;
  if (run.group->rank() == 0 && is_sound(best)) at_hand = format::read_state(best);
  const bool is_there =
      run.group->broadcast_text(at_hand ? "yes" : "no", 0, "the best checkpoint") == "yes";
  if (is_there) {
    const char* const weights = run.recipe.ema ? "" : "model";
    checkpoint::GroupReader(*run.group, read_by(run),
                            [&] { return format::weights_file(best, weights); }, model_shards(run),
                            {.casts_floats = true})
        .read([&run] { run.beat.enter(core::Phase::kValidating); });
  }
  run.engine->weights_changed();
  if (!is_there) return std::nullopt;
  return at_hand ? at_hand : run.state;
}

}  // namespace scaletrain::train
