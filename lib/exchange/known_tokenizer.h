// Compares the tokenizers of weights and token files by SHA-256.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "lib/format/weights/weight_files.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::exchange {

struct KnownTokenizer {
  std::string name;   // as in a token card: "bytes", or the file's name and SHA-256
  std::string place;  // file with this name
};

// Returns the tokenizer in the card beside `token_file`; nullopt for a URL or without a local card.
// Throws core::DataError for a damaged card.
std::optional<KnownTokenizer> tokenizer_of_tokens(const std::string& token_file);

// Returns the card of a run's training tokens that its folder has recorded, cards/train.json, which
// stays as it is where the tokens are written again; nullopt without that file.
std::optional<std::filesystem::path> recorded_card(const std::filesystem::path& run);

// Returns the tokenizer of a run's training tokens from the recorded card; nullopt without it.
std::optional<KnownTokenizer> tokenizer_of_run(const std::filesystem::path& run);

// Throws core::CheckpointError if the card of `token_file` names another tokenizer than that of the
// training tokens of the run in `run`.
void check_tokenizer_of_run(const std::string& token_file, const std::filesystem::path& run);

// Throws core::CheckpointError if the held-out set `name` of `recipe` has tokens of another
// tokenizer than the run that wrote `checkpoint`.
void check_tokenizer_of_set(const recipe::Recipe& recipe, const std::string& name,
                            const std::filesystem::path& checkpoint);

// Returns the tokenizer of weights: that of the run that wrote the checkpoint, or the Hugging Face
// tokenizer file beside the weights that may match `asked` (the name in a card); nullopt if there
// is none.
std::optional<KnownTokenizer> tokenizer_of_weights(const format::WeightFiles& files,
                                                   const std::string& asked);

// True if both names have the same SHA-256, whatever the file names.
bool is_same_tokenizer(const std::string& a, const std::string& b);

}  // namespace scaletrain::exchange
