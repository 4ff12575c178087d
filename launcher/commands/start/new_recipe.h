// Writes the recipe of `recipe new` for training data that was found.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "launcher/commands/start/found_data.h"

namespace scaletrain::launcher {

// Returns a complete recipe. `model`: a name in models.def, "" for the task's default. Throws
// core::UsageError for a model that is unknown, needs a file or is for another task.
nlohmann::ordered_json new_recipe(const FoundData& found, const std::string& model);

}  // namespace scaletrain::launcher
