// The files that a recipe names, and whether they are there, asked before anything is started.
#pragma once

#include <functional>
#include <string>

namespace scaletrain::recipe {

struct Recipe;

// Throws core::DataError that names the model's file, the shards and folders that cannot be read:
// the first of them where there are many. URLs are left to the workers.
void check_sources(const Recipe& recipe);

// Checks /model/weights when a run begins: a resumed run does not read them.
void check_weights(const Recipe& recipe);

}  // namespace scaletrain::recipe
