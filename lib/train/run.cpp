#include "lib/train/run.h"

#include "lib/train/plateau.h"

namespace scaletrain::train {

double Run::lr() const {
  return lowered_lr(recipe, state, learner.schedule->lr(state.step + length.schedule_shift));
}

NamedTensors Run::ema_buffers() const {
  NamedTensors result;
  if (!ema) return result;
  for (const auto& [name, buffer] : learner.buffers()) result[name] = ema->tensors().at(name);
  return result;
}

std::filesystem::path Run::checkpoints() const {
  return std::filesystem::path(recipe.output) / "checkpoints";
}

}  // namespace scaletrain::train
