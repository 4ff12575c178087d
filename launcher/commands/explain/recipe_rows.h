// Every key of a resolved recipe with where its value was written.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "launcher/commands/explain/explanation.h"

namespace scaletrain::launcher {

// `resolved` is recipe.json's text, `origins` what recipe::key_origins found. A key that nobody
// wrote comes from "default".
std::vector<Explained> recipe_rows(const std::string& resolved,
                                   const std::map<std::string, std::string>& origins);

}  // namespace scaletrain::launcher
