// Speed of a recipe's data loader, measured without training.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/data/loader/batch.h"
#include "lib/data/loader/thread_search.h"
#include "lib/data/set/dataset.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::app {

// Returns the recipe to measure: a recipe's file, or shards with random crops and flips to
// `image_size`. Throws core::UsageError for compressed shards.
recipe::Recipe recipe_to_measure(const std::vector<std::string>& paths, std::int64_t image_size);

// Opens the recipe's training set.
std::shared_ptr<const data::Dataset> open_training_set(const recipe::Recipe& recipe);

struct LoaderSpeed {
  std::int64_t images = 0;
  double seconds = 0;
  data::StageTimes stages;  // seconds of all threads
  data::ReadAheadSize size;

  double images_per_s() const { return static_cast<double>(images) / seconds; }
};

// Reads whole batches for `seconds`, as training does.
LoaderSpeed loader_speed(const recipe::Data& data,
                         const std::shared_ptr<const data::Dataset>& dataset, double seconds,
                         data::ReadAheadSize size);

// Searches for the threads and the read-ahead that read fastest, as data.threads "auto" does, and
// returns their speed. Takes about `most_s`; at most one window, a twelfth, longer.
LoaderSpeed best_loader_speed(const recipe::Data& data,
                              const std::shared_ptr<const data::Dataset>& dataset, double most_s);

}  // namespace scaletrain::app
