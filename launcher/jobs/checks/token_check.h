// Checks that the token files of a recipe can be trained on, before anything starts.
#pragma once

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::launcher {

// Opens local token files with their masks and cards; does nothing for a recipe without tokens, and
// leaves URLs to the workers. Throws core::DataError for a damaged file or mask, files or sets with
// different tokenizers, a token beyond the model's vocabulary at the start of a file, or less than
// one window; core::RecipeError for a tokenizer with more tokens than the model, or fewer windows
// than a global batch of `ranks` ranks.
void check_tokens(const recipe::Recipe& recipe, int ranks);

}  // namespace scaletrain::launcher
