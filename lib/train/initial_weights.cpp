#include "lib/train/initial_weights.h"

#include "lib/checkpoint/weights.h"
#include "lib/core/disk.h"
#include "lib/core/log.h"
#include "lib/exchange/weights_model.h"

namespace scaletrain::train {

void take_weights(Run& run) {
  if (!run.recipe.model.weights || run.group->rank() != 0) return;
  const recipe::Weights& weights = *run.recipe.model.weights;
  const checkpoint::WeightReport report = checkpoint::load_weights(
      weights, run.learner.model->weight_rules(), run.learner.tensors(),
      [&run] { run.beat.enter(core::Phase::kStarting); },
      [&run](const format::WeightFiles& files) {
        exchange::check_same_computation(run.recipe.model, files);
      });
  core::log("{}: {}", weights.path, checkpoint::summary(report));
  core::WatchedDisk disk = run.disk();
  disk.make_folders(run.recipe.output);
  core::write_durably(disk, std::filesystem::path(run.recipe.output) / "weights.json",
                      checkpoint::to_json(report));
}

}  // namespace scaletrain::train
