// Checks the number of training images against the batch, as far as the launcher can count them.
#pragma once

#include <filesystem>
#include <string>

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::launcher {

// Throws core::RecipeError if an epoch of images has fewer samples than the global batch of `ranks`
// ranks. Counts the files of class folders until there are enough; for a local shard uses its
// index, or card.json beside it if the shard has the size in the card. Sets with other shards are
// left to the workers.
void check_samples(const recipe::Recipe& recipe, int ranks);

// Returns the extension of a file in lower case, without its dot; "" if it has none.
std::string lower_extension(const std::filesystem::path& file);

}  // namespace scaletrain::launcher
