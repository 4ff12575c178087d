// EMA and SWA of a run's weights: the averages that it keeps, and their first steps.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "lib/format/checkpoint/train_state.h"
#include "lib/optim/mean.h"
#include "lib/train/model/buffers.h"
#include "lib/train/rules/length.h"

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::train {

// Plans the recipe's averages (EMA, SWA); validation may use the first one.
std::vector<optim::MeanPlan> plan_means(const recipe::Recipe& recipe, const Length& length);

// Throws core::RecipeError for SWA of a custom model with activation statistics, such as
// BatchNorm's, which lib/recipe cannot check.
void check_means(const recipe::Recipe& recipe, const NamedTensors& buffers);

// The learning rate of step `step` (from 0) of a recipe with /swa/lr, which leaves that of
// `scheduled`, the schedule's at a step, at swa.start; nullopt: it is the schedule's.
using ScheduledLr = std::function<double(std::int64_t step)>;
std::optional<double> averaging_lr(const recipe::Recipe& recipe, const Length& length,
                                   std::int64_t step, const ScheduledLr& scheduled);

// True if an average contains weights of this training: SWA only after its start.
bool has_begun(const optim::MeanPlan& plan, const format::TrainState& state);

}  // namespace scaletrain::train
