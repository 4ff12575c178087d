// Recipe and class names stored in a checkpoint, for the commands that only look at the model.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lib/recipe/recipe.h"

namespace scaletrain::app {

// The recipe in a checkpoint, with `overrides` in the form of --set.
recipe::Recipe recipe_of(const std::filesystem::path& checkpoint, const recipe::CatalogPtr& catalog,
                         const std::vector<std::string>& overrides = {});

// Class names of the model, empty if it has none.
std::vector<std::string> classes_of(const std::filesystem::path& checkpoint);

}  // namespace scaletrain::app
