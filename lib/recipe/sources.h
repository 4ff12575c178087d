// Checks that the files of a recipe exist, before anything is started.
#pragma once

#include <functional>
#include <string>

namespace scaletrain::recipe {

struct Recipe;

// Throws core::DataError naming the model's file, the shards and the folders that cannot be read;
// of many shards, the first. URLs are checked by the workers.
void check_sources(const Recipe& recipe);

// Checks /model/weights of a new run; a resumed run does not read them.
void check_weights(const Recipe& recipe);

}  // namespace scaletrain::recipe
