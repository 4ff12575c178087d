// Checks of combinations of keys, after each key was checked by itself.
#pragma once

#include "lib/recipe/catalog/task.h"
#include "lib/recipe/schema/node.h"
#include "lib/recipe/schema/problems.h"

namespace scaletrain::recipe {

struct Recipe;

// Returns the task in the recipe, or the model's default task.
const TaskRow& task_of(const Recipe& recipe);

// Adds a problem for each invalid combination; `tree` is the source of `recipe`.
void check_between_keys(const Recipe& recipe, const Node& tree, Problems& problems);

}  // namespace scaletrain::recipe
