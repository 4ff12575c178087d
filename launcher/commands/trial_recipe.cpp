#include "launcher/commands/trial_recipe.h"

#include "lib/recipe/recipe.h"

namespace scaletrain::launcher {
namespace {

recipe::Duration in_steps(std::int64_t count) {
  return {recipe::Duration::Unit::kSteps, static_cast<double>(count)};
}

void remove_evaluation(recipe::Recipe& recipe) {
  recipe.data.val.reset();
  recipe.data.test.reset();
  recipe.data.extra.clear();
  recipe.ema.reset();
  recipe.swa.reset();
  recipe.early_stopping.reset();
}

}  // namespace

void make_trial(std::int64_t steps, std::int64_t log_every, recipe::Recipe& recipe) {
  remove_evaluation(recipe);
  recipe.data.resize_ramp.reset();
  recipe.schedule = {};
  recipe.schedule.decay.name = "constant";
  recipe.length = in_steps(steps);
  recipe.validate_every = in_steps(steps);
  recipe.log = {};
  recipe.log.every = in_steps(log_every);
  recipe.anomaly.reset();
  recipe.integrity.reset();
  recipe.profile.reset();
  recipe::Checkpoint& checkpoint = recipe.checkpoint;
  checkpoint.every = in_steps(steps);
  checkpoint.automatic = false;
  checkpoint.keep_every.reset();
  checkpoint.mirror.clear();
  checkpoint.replicate.reset();
  checkpoint.best.weights.clear();
}

}  // namespace scaletrain::launcher
