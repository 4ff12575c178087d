#include "lib/train/run/run.h"

#include "lib/train/model/mean_plan.h"
#include "lib/train/rules/anomaly.h"
#include "lib/train/rules/plateau.h"

namespace scaletrain::train {

double Run::lr() const {
  const auto scheduled = [this](std::int64_t step) {
    const double lr = learner.schedule->lr(length.schedule_place(step));
    return reduced_lr(recipe.anomaly, state, lowered_lr(recipe, state, lr));
  };
  const auto averaging = averaging_lr(recipe, length, state.step, scheduled);
  return averaging ? *averaging : scheduled(state.step);
}

std::optional<double> Run::weight_decay() const {
  return optim::scheduled_weight_decay(recipe.optimizer, length.schedule_place(state.step),
                                       length.schedule_end());
}

units::Shards Run::trained() const {
  units::Shards result;
  for (const units::NamedParameter& parameter : engine->owned()) {
    result.emplace(parameter.name, parameter.state());
  }
  return result;
}

NamedTensors Run::buffers_of(const optim::Mean& mean) const {
  NamedTensors result;
  for (const auto& [name, buffer] : learner.buffers()) result[name] = mean.state().at(name).tensor;
  return result;
}

core::WatchedDisk Run::disk() const {
  return {core::system_disk(), [own = beat]() mutable { own.enter(core::Phase::kSaving); }};
}

std::filesystem::path Run::checkpoints() const {
  return std::filesystem::path(recipe.output) / "checkpoints";
}

}  // namespace scaletrain::train
