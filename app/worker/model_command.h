// `scaletrain-worker model`: checks that a recipe's model can be built, for `scaletrain recipe
// check --worker`.
#pragma once

#include "app/worker/models.h"

namespace scaletrain::app {

// Builds the model on the CPU without data (lib/train/simulate/model_check.h); returns 0 on
// success. Throws the core::RecipeError that a run would throw.
int run_model(int argc, char** argv, const Models& models);

}  // namespace scaletrain::app
