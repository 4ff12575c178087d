// The program whose processes train: ours beside this one, or one of somebody's own with models of
// its own (docs/internals/own-model.md).
#pragma once

#include <string>
#include <vector>

#include "launcher/flags/launch_options.h"
#include "lib/recipe/catalog/catalog.h"

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::launcher {

// --set and, as one more of them, --worker: the recipe remembers its worker. Throws
// core::UsageError for a --worker that is no executable file.
std::vector<std::string> overrides_of(const LaunchOptions& options);

// The rows of --worker `flag`; "": ours. Throws core::UsageError.
recipe::CatalogPtr catalog_of_flag(const std::string& flag);

// The program that does `command`, which has no recipe: --worker `flag`, "": ours. Throws
// core::UsageError naming `command`.
std::string worker_of_flag(const char* command, const std::string& flag);

// The program that trains `recipe`. Throws core::UsageError where ours is missing.
std::string worker_of(const recipe::Recipe& recipe);

}  // namespace scaletrain::launcher
