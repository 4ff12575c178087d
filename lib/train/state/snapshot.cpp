#include "lib/train/state/snapshot.h"

#include <fmt/format.h>

#include "lib/checkpoint/cut.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/recipe/load.h"
#include "lib/train/model/mean_plan.h"
#include "lib/train/model/number_types.h"
#include "lib/train/model/replicate.h"
#include "lib/train/run/held.h"
#include "lib/train/run/stages.h"
#include "lib/train/run/whole_tensors.h"
#include "lib/train/state/evaluated_tensors.h"
#include "lib/train/state/even_parts.h"
#include "lib/train/state/own_state.h"
#include "lib/train/state/replica_states.h"

namespace scaletrain::train {
namespace {

// Days of training are not given up for a test that cannot be had.
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

// Gathers tensor-parallel shards into full tensors for a checkpoint.
void gather_parts(const Run& run, checkpoint::Contents& contents) {
  if (run.learner.parts.empty()) return;
  if (contents.cut) return divide_evenly(run.mesh->model(), contents);
  const auto gather = [&run](NamedTensors& tensors) {
    tensors = gather_wholes(run.mesh->group(core::Axis::kTensor), run.learner.parts, tensors);
  };
  gather(contents.model);
  for (auto& [name, mean] : contents.means) gather(mean.tensors);
  gather(contents.optimizer);
}

// True if a snapshot refers to the run's own tensors. Others that are as large as the model are
// copied at once, since they take a device's memory until then.
bool stands(const Run& run) {
  const bool is_gathered = !run.learner.parts.empty() && !is_cut(run);
  return !is_gathered && !run.replicas->weights_differ() && !run.learner.has_evaluation_weights();
}

}  // namespace

checkpoint::Contents snapshot(Run& run) {
  const NamedTensors buffers = run.learner.buffers();
  run.sets.training_set.gather(*run.group, run.state);
  checkpoint::Contents contents;
  contents.model = held_tensors(run);
  contents.cut = cut_of(run);
  contents.stands = stands(run);
  for (auto& [name, tensor] : evaluated_tensors(run)) contents.model[name] = tensor;
  for (const auto& [name, tensor] : buffers) {  // forward changes them
    contents.model.at(name) = contents.model.at(name).clone();
  }
  contents.buffers = buffers_of_data_ranks(run);
  add_own_state(run, contents);
  for (const auto& mean : run.means) {
    if (!has_begun(mean->plan(), run.state)) continue;
    const NamedTensors own = run.buffers_of(*mean);
    checkpoint::MeanContents& saved = contents.means[mean->plan().name];
    saved.tensors = mean->tensors();
    for (auto& [name, tensor] : mean_over_ranks(run.mesh->data(), own)) {
      saved.tensors[name] = tensor;
    }
    saved.buffers = gather_ranks(run.mesh->data(), own);
  }
  contents.optimizer = run.learner.optimizer->state();
  share_buffers(run, contents);
  contents.optimizer.merge(run.replicas->state());
  gather_parts(run, contents);
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
  const NamedTensors own = held_tensors(run);
  run.learner.end_training(own);
  NamedTensors tensors = blank_wholes(gathered_parts(run), own);
  const std::optional<checkpoint::Cut> cut = cut_of(run);
  const std::filesystem::path best =
      format::checkpoint_path(run.checkpoints(), run.state.best_step);
  const auto progress = [&run] { run.beat.enter(core::Phase::kValidating); };
  const char* const weights = run.recipe.ema ? "" : "model";
  std::optional<format::TrainState> at_hand;
  if (run.group->rank() == 0 && is_sound(best)) {
    if (!cut) checkpoint::load_model(best, tensors, progress, weights);
    at_hand = format::read_state(best);
  }
  const bool is_there =
      run.group->broadcast_text(at_hand ? "yes" : "no", 0, "whether the best is sound") == "yes";
  if (is_there && cut) {
    checkpoint::load_cut_model(best, tensors, cut->parts, progress, weights);
  } else if (is_there) {
    replicate(*run.group, values(tensors), "best model");
    take_parts(gathered_parts(run), tensors, own);
  }
  run.engine->weights_changed();
  if (!is_there) return std::nullopt;
  return at_hand ? at_hand : run.state;
}

}  // namespace scaletrain::train
