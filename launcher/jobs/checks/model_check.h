// Asks a worker, started without data and other ranks, about a recipe's model.
#pragma once

#include <string>
#include <vector>

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::launcher {

// Lets the worker of `recipe`, which was read from `path` with `overrides`, build the model on the
// CPU as one of `ranks` ranks has it, and prints what it says. Returns its exit code: 0 if the
// model can be built, 2 if the recipe is wrong. Throws core::UsageError where there is no worker or
// it does not end.
int check_in_worker(const recipe::Recipe& recipe, const std::string& path,
                    std::vector<std::string> overrides, int ranks);

}  // namespace scaletrain::launcher
