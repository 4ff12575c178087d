#include "lib/train/state/go_back.h"

#include "lib/train/state/rank_state.h"
#include "lib/train/state/resume.h"

namespace scaletrain::train {

void go_back(Run& run, const std::filesystem::path& checkpoint) {
  run.engine->settle();
  run.learner.optimizer->settle();
  const format::TrainState now = run.state;
  run.state = state_of_rank_0(*run.group, checkpoint);
  const format::TrainState then = run.state;
  restore(run, checkpoint);
  const bool same_ranks = then.world_size == now.world_size && then.mesh == now.mesh;
  if (same_ranks) restore_ranks(*run.mesh, run.learner.buffers(), checkpoint);
  restore_means(run, checkpoint, same_ranks);
  restore_rank_state(run, checkpoint);
  run.engine->weights_changed();
}

}  // namespace scaletrain::train
