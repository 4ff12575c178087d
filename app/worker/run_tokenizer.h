// The tokenizer that a run's token files were made by.
#pragma once

#include <cstdint>
#include <memory>

#include "app/tokenizer/tokenizer.h"
#include "lib/recipe/generation.h"

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::app {

struct RunTokenizer {
  std::unique_ptr<Tokenizer> tokenizer;
  std::int64_t end_of_text = 0;  // that of the token files, where they can be found
};

// The one that is asked for, or otherwise that of the card of `recipe`'s token files: a tokenizer's
// file is looked for beside them and in the working directory. Throws core::UsageError where it is
// not to be found, is another than the card's, or has more tokens than the model; and what
// make_tokenizer throws.
RunTokenizer tokenizer_of(const recipe::Recipe& recipe, const recipe::Generation& asked);

}  // namespace scaletrain::app
