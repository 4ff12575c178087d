// Recipe and class names stored in a checkpoint, for commands that only use the model.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lib/recipe/recipe.h"

namespace scaletrain::app {

// Returns the recipe in a checkpoint, with `overrides` in the form of --set.
recipe::Recipe recipe_of(const std::filesystem::path& checkpoint, const recipe::CatalogPtr& catalog,
                         const std::vector<std::string>& overrides = {});

// Returns the class names of the model; {} if it has none.
std::vector<std::string> classes_of(const std::filesystem::path& checkpoint);

}  // namespace scaletrain::app
