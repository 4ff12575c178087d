// Checks between keys, made once each key is right by itself.
#pragma once

#include "lib/recipe/catalog/task.h"
#include "lib/recipe/schema/node.h"
#include "lib/recipe/schema/problems.h"

namespace scaletrain::recipe {

struct Recipe;

// The task that is named, or the model's.
const TaskRow& task_of(const Recipe& recipe);

// Adds keys that do not fit each other to `problems`; `recipe` was read from `tree`.
void check_between_keys(const Recipe& recipe, const Node& tree, Problems& problems);

}  // namespace scaletrain::recipe
