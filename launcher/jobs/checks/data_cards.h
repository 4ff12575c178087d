// Records the provenance of a run's data and tokenizer in its folder: the card.json of each set,
// and the files beside the weights.
#pragma once

#include <filesystem>

#include "lib/recipe/sections/data/data.h"
#include "lib/recipe/sections/model.h"

namespace scaletrain::launcher {

// Throws core::DataError if card.json in the folder of a set is a placeholder: a git-lfs pointer or
// an HTML page (lib/core/text/placeholder.h). The cards of tokens are read elsewhere.
void check_cards(const recipe::Data& data);

// Copies card.json beside the first shard of a set, or in its folder, or the NAME.tokens.json of
// its first token file, to OUTPUT/cards/train.json, val.json and test.json; a set without a card
// has none there. Where a resumed run's training tokens have lost their card, the recorded one
// stays: it names the tokenizer of the run. Throws core::Error for a card that cannot be read or
// written.
void record_cards(const recipe::Data& data, const std::filesystem::path& output, bool is_resumed);

// Copies the companion files of a language model's initial weights (tokenizer, chat template, ids
// of special tokens) to `output`/tokenizer, for the export.
void record_companions(const recipe::Model& model, const std::filesystem::path& output);

}  // namespace scaletrain::launcher
