// Checks a recipe's model in a worker, which runs without data and other ranks.
#pragma once

#include <string>
#include <vector>

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::launcher {

// Runs the worker of `recipe`, which was read from `path` with `overrides`: builds the model on the
// CPU as on one of `ranks` ranks, and prints the worker's output. Returns its exit code: 0 if the
// model can be built, 2 if the recipe is wrong. Throws core::UsageError if there is no worker or it
// does not end.
int check_in_worker(const recipe::Recipe& recipe, const std::string& path,
                    std::vector<std::string> overrides, int ranks);

}  // namespace scaletrain::launcher
