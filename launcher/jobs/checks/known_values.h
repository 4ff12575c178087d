// Completes values that a recipe leaves open from its weights and its data.
#pragma once

#include <string>
#include <vector>

namespace scaletrain::launcher {

// The --set that complete the recipe at `path` with `overrides`, each group shown in one line:
// keys of /model and the preprocessing as /model/weights says, /model/vocab_size of the training
// tokens' card, /model/num_classes of the training set's class names. A key that is written stays,
// and what /model/weights/allow_other names is not taken. Files that are missing or remote say
// nothing: what needs them reports that. Throws core::RecipeError for what is not JSON,
// core::DataError and core::CheckpointError for damaged files.
std::vector<std::string> known_values(const std::string& path,
                                      const std::vector<std::string>& overrides);

}  // namespace scaletrain::launcher
