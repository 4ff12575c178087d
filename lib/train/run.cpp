#include "lib/train/run.h"

namespace scaletrain::train {

double Run::lr() const { return learner.schedule->lr(state.step + length.schedule_shift); }

std::filesystem::path Run::checkpoints() const {
  return std::filesystem::path(recipe.output) / "checkpoints";
}

}  // namespace scaletrain::train
