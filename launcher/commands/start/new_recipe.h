// Writes the recipe of `recipe new` for training data that was found.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "launcher/commands/start/found_data.h"

namespace scaletrain::launcher {

// A complete recipe; `model` is a name of models.def, "" for the usual one of the task. Throws
// core::UsageError for a model that is unknown, needs a file or is for another task.
nlohmann::ordered_json new_recipe(const FoundData& found, const std::string& model);

}  // namespace scaletrain::launcher
