// The tokenizers of weights and of token files, compared by their SHA-256.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "lib/format/weights/weight_files.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::exchange {

struct KnownTokenizer {
  std::string name;   // as in a token card: "bytes", or the file's name and SHA-256
  std::string place;  // the file that says it
};

// Returns the tokenizer of the card beside `token_file`; nullopt for a URL and where there is no
// card on this machine. Throws core::DataError for a damaged card.
std::optional<KnownTokenizer> tokenizer_of_tokens(const std::string& token_file);

// Returns the tokenizer of a run's training tokens, as cards/train.json in its folder says; nullopt
// without that file.
std::optional<KnownTokenizer> tokenizer_of_run(const std::filesystem::path& run);

// Throws core::CheckpointError where `token_file` has a card of another tokenizer than the training
// tokens of the run in `run`.
void check_tokenizer_of_run(const std::string& token_file, const std::filesystem::path& run);

// Throws core::CheckpointError where the held-out set `name` of `recipe` has tokens of another
// tokenizer than the run that wrote `checkpoint`.
void check_tokenizer_of_set(const recipe::Recipe& recipe, const std::string& name,
                            const std::filesystem::path& checkpoint);

// Returns the tokenizer of weights: that of the run whose checkpoint they are, or the Hugging Face
// tokenizer file beside them that may be the one with the name `asked` (a card's tokenizer);
// nullopt if they have none.
std::optional<KnownTokenizer> tokenizer_of_weights(const format::WeightFiles& files,
                                                   const std::string& asked);

// True if both name the same bytes, whatever the files are called.
bool is_same_tokenizer(const std::string& a, const std::string& b);

}  // namespace scaletrain::exchange
