// Checks that the token files of a recipe can be trained on, before anything starts.
#pragma once

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::launcher {

// Opens the token files of this machine, with their masks and cards; does nothing for a recipe
// without tokens, and leaves URLs to the workers. Throws core::DataError: a file or mask that is
// damaged, files or sets of several tokenizers, a token among the first of a file that the model
// does not have, no whole window; and core::RecipeError: a tokenizer with more tokens than the
// model, fewer windows than a global batch of `ranks` ranks takes.
void check_tokens(const recipe::Recipe& recipe, int ranks);

}  // namespace scaletrain::launcher
