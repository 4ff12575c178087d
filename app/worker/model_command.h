// `scaletrain-worker model`: whether a model can be what its recipe asks for, for `scaletrain
// recipe check --worker`.
#pragma once

#include "app/worker/models.h"

namespace scaletrain::app {

// Builds the model on the CPU without data (lib/train/simulate/model_check.h); 0 if that is
// possible. Throws core::RecipeError with what a run would refuse.
int run_model(int argc, char** argv, const Models& models);

}  // namespace scaletrain::app
