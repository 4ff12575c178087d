// How many threads of OpenMP a worker gets.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/recipe/recipe.h"

namespace scaletrain::launcher {

// Of a recipe's worker: the recipe's `threads`, else its share of the cores among
// `local_world_size` workers, and no more than the `bound` CPUs that it may run on (0: all).
std::int64_t recipe_threads(const recipe::Recipe& recipe, int local_world_size, std::size_t bound);

}  // namespace scaletrain::launcher
