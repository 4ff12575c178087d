// Chooses the worker program: the standard one beside the launcher, or a custom one with models of
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

// Returns the values of --set and, as one more of them, --worker, so that the recipe stores its
// worker. Throws core::UsageError if --worker is not an executable file.
std::vector<std::string> overrides_of(const LaunchOptions& options);

// Returns the catalog of --worker `flag`; "": the standard one. Throws core::UsageError.
recipe::CatalogPtr catalog_of_flag(const std::string& flag);

// Returns the worker program for `command`, which has no recipe: --worker `flag`; "": the standard
// one. Throws core::UsageError naming `command`.
std::string worker_of_flag(const char* command, const std::string& flag);

// Returns the worker program of `recipe`. Throws core::UsageError if the standard one is missing.
std::string worker_of(const recipe::Recipe& recipe);

}  // namespace scaletrain::launcher
