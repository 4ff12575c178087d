// Where a run's data came from: the card.json of each set, kept with the run.
#pragma once

#include <filesystem>

#include "lib/recipe/sections/data.h"

namespace scaletrain::launcher {

// Copies card.json beside the first shard of a set, or in its folder, or the NAME.tokens.json of
// its first token file, to OUTPUT/cards/train.json, val.json and test.json; a set without a card
// has none there. Throws core::Error for a card that cannot be read or written.
void record_cards(const recipe::Data& data, const std::filesystem::path& output);

}  // namespace scaletrain::launcher
