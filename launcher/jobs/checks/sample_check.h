// Checks the number of training images against the batch, as far as the launcher can count them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::launcher {

// Throws core::RecipeError if an epoch of images has fewer samples than the global batch of `ranks`
// ranks. Counts the files of class folders until there are enough; for a local shard uses its
// index, in data.index_cache or beside the shard, or else card.json if the shard has the size in
// the card. Shards in quarantine do not count. Sets with other shards are left to the workers.
// Throws core::CheckpointError for a damaged quarantine.json.
void check_samples(const recipe::Recipe& recipe, int ranks);

// Counts the training images of an epoch in the same way; nullopt if the launcher cannot.
std::optional<std::int64_t> training_images(const recipe::Recipe& recipe);

// Returns the extension of a file in lower case, without its dot; "" if it has none.
std::string lower_extension(const std::filesystem::path& file);

}  // namespace scaletrain::launcher
