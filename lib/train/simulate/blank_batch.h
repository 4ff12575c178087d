// A batch of nothing, in the shapes of a recipe's: for what depends on shapes alone.
#pragma once

#include "lib/recipe/recipe.h"
#include "lib/task/task.h"

namespace scaletrain::train {

// `tokens` of each sample, where the model reads tokens. On the CPU.
task::Example blank_batch(const recipe::Recipe& recipe, const task::Task& task,
                          std::int64_t samples, std::int64_t tokens);

}  // namespace scaletrain::train
