// Recipes for the tests of loading.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "lib/recipe/catalog/lists.h"
#include "tests/temporary_folder.h"

namespace scaletrain::recipe {

// The smallest recipe, one key a line; `more` follows as further lines from line 6 on.
std::string minimal_recipe(const std::string& more = "");

// The whole text of the error of parsing `text` as "r.json", or "no error".
std::string error_of(const std::string& text, const std::vector<std::string>& overrides = {});

// The same for a file; "RecipeError" is the only type that passes.
std::string load_error_of(const std::filesystem::path& path);

// Returns the names of the models for which `is_one` is true, as an error lists them.
std::string models_where(const std::function<bool(const Row& row)>& is_one);

}  // namespace scaletrain::recipe
