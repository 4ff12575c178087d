// A recipe file as the commands that train by it read it.
#pragma once

#include <string>
#include <vector>

#include "lib/recipe/recipe.h"

namespace scaletrain::launcher {

// recipe::load_recipe, with what the recipe leaves open and its data says: /model/vocab_size is
// that of the card of the training tokens, where the model does not start from weights. Says so in
// a line. Throws as load_recipe does, and core::DataError for a damaged card.
recipe::Recipe load_recipe_of_run(const std::string& path,
                                  const std::vector<std::string>& overrides);

}  // namespace scaletrain::launcher
