// Checks the number of training images against the batch, as far as the launcher can count them.
#pragma once

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::launcher {

// Throws core::RecipeError where an epoch of images has fewer samples than the global batch of
// `ranks` ranks. Counts the files of class folders until there are enough; the samples of a local
// shard are those of its index, or of card.json beside it if the shard has the size that the card
// says. A set that has other shards is left to the workers.
void check_samples(const recipe::Recipe& recipe, int ranks);

}  // namespace scaletrain::launcher
