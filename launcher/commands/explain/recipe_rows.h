// Every key of a resolved recipe with the origin of its value.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "launcher/commands/explain/explanation.h"

namespace scaletrain::launcher {

// `resolved`: text of recipe.json; `origins`: result of recipe::key_origins(). Keys without an
// origin come from "default".
std::vector<Explained> recipe_rows(const std::string& resolved,
                                   const std::map<std::string, std::string>& origins);

}  // namespace scaletrain::launcher
