// Completes values that a recipe leaves open from its weights and its data.
#pragma once

#include <string>
#include <vector>

namespace scaletrain::launcher {

// Returns the --set values that complete the recipe at `path` with `overrides`, and logs one line
// for each group: keys of /model and the preprocessing from /model/weights, /model/vocab_size from
// the training tokens' card, /model/num_classes from the training set's class names. Keys that are
// written stay, and keys in /model/weights/allow_other are not taken. Missing or remote files are
// skipped; other checks report them. Throws core::RecipeError for invalid JSON, core::DataError and
// core::CheckpointError for damaged files.
std::vector<std::string> known_values(const std::string& path,
                                      const std::vector<std::string>& overrides);

}  // namespace scaletrain::launcher
