// Checks of a checkpoint or run folder before a recipe resumes from it.
#pragma once

#include <filesystem>

#include "lib/recipe/recipe.h"

namespace scaletrain::launcher {

// Throws core::UsageError if the recipe ends before the step that `checkpoint` has reached.
void refuse_past_end(const std::filesystem::path& checkpoint, const recipe::Recipe& recipe);

// Throws core::UsageError for imported weights: they have no training state to resume from.
void refuse_untrained(const std::filesystem::path& checkpoint);

// Logs that `recipe` replaces the recipe of an earlier start in `output` that failed before its
// first checkpoint.
void note_replaced_recipe(const std::filesystem::path& output, const recipe::Recipe& recipe);

}  // namespace scaletrain::launcher
