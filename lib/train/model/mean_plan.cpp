#include "lib/train/model/mean_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lib/core/error.h"
#include "lib/optim/schedule.h"
#include "lib/optim/swa_lr.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::train {
namespace {

constexpr double kDefaultStart = 0.75;  // share of training: Izmailov et al., 2018, section 4

// Steps that are done by the end of `duration`, of a run whose epochs may have changed.
std::int64_t steps_until(const recipe::Duration& duration, const Length& length) {
  const std::int64_t steps = optim::duration_steps(duration, length.steps_per_epoch);
  return duration.unit == recipe::Duration::Unit::kEpochs ? length.step_at(steps) : steps;
}

std::int64_t swa_start(const recipe::Swa& swa, const Length& length) {
  if (swa.start) return steps_until(*swa.start, length);
  const std::int64_t place =
      std::llround(kDefaultStart * static_cast<double>(length.schedule_end()));
  return length.growing && length.in_epochs ? length.step_at(place) : place - length.schedule_shift;
}

// True if a duration in epochs follows the data, not the steps, while the batch grows.
bool follows_data(const recipe::Duration& duration, const Length& length) {
  return length.growing && duration.unit == recipe::Duration::Unit::kEpochs;
}

}  // namespace

std::vector<optim::MeanPlan> plan_means(const recipe::Recipe& recipe, const Length& length) {
  std::vector<optim::MeanPlan> plans;
  if (recipe.ema) {
    plans.reserve(recipe.ema->decay.size());
    for (const double decay : recipe.ema->decay) {
      plans.push_back({.name = plans.empty() ? "ema" : fmt::format("ema:{}", decay),
                       .decay = decay,
                       .warmup = recipe.ema->warmup,
                       .every = recipe.ema->every});
    }
  }
  if (recipe.swa) {
    const std::int64_t every = optim::duration_steps(recipe.swa->every, length.steps_per_epoch);
    plans.push_back({.name = "swa",
                     .decay = std::nullopt,
                     .start = swa_start(*recipe.swa, length),
                     .every = std::max<std::int64_t>(1, every)});
    if (follows_data(recipe.swa->every, length)) {
      plans.back().place = [length](std::int64_t steps) { return length.place(steps); };
    }
  }
  return plans;
}

void check_means(const recipe::Recipe& recipe, const NamedTensors& buffers) {
  if (!recipe.swa) return;
  for (const auto& [name, buffer] : buffers) {
    if (!name.ends_with("running_mean")) continue;
    throw core::RecipeError(
        "/swa",
        fmt::format("{} has BatchNorm statistics ({}), and averaged weights would need their own",
                    recipe.model.name, name),
        "use /ema, or a model without BatchNorm");
  }
}

std::optional<double> averaging_lr(const recipe::Recipe& recipe, const Length& length,
                                   std::int64_t step, const ScheduledLr& scheduled) {
  if (!recipe.swa || !recipe.swa->lr) return std::nullopt;
  const recipe::Swa& swa = *recipe.swa;
  const std::int64_t start = swa_start(swa, length);
  optim::SwaLr plan{.lr = *swa.lr,
                    .start = start,
                    .anneal = optim::duration_steps(swa.anneal, length.steps_per_epoch),
                    .is_linear = swa.anneal_strategy == "linear"};
  const double from = scheduled(std::clamp<std::int64_t>(start, 0, step));
  if (step < start || !follows_data(swa.anneal, length)) return optim::swa_lr(plan, from, step);
  plan.start = length.place(start);
  return optim::swa_lr(plan, from, length.place(step));
}

bool has_begun(const optim::MeanPlan& plan, const format::TrainState& state) {
  return plan.decay || state.swa_updates > 0;
}

}  // namespace scaletrain::train
