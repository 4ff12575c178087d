// The tokenizer of a run's token files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "app/tokenizer/tokenizer.h"
#include "lib/recipe/generation.h"

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::app {

struct RunTokenizer {
  std::unique_ptr<Tokenizer> tokenizer;
  std::int64_t end_of_text = 0;  // taken from the card if found
};

// Opens the tokenizer in `asked`, otherwise the one in the card that the folder `run` has recorded
// (cards/train.json) or that lies beside `recipe`'s token files; its file is searched beside them
// and in the working directory. Throws core::UsageError if it is not found, differs from the
// card's, or has more tokens than the model, and the errors of make_tokenizer().
RunTokenizer tokenizer_of(const recipe::Recipe& recipe, const std::filesystem::path& run,
                          const recipe::Generation& asked);

}  // namespace scaletrain::app
