// Advice on a slow data loader: the stage that limits it, and changes with the largest effect
// first.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lib/data/loader/thread_search.h"

namespace scaletrain::app {

struct LoaderFacts {
  // Measured with one thread: seconds an image.
  double read_s = 0, decode_s = 0, augment_s = 0;
  // Measured with the best number of threads.
  data::ReadAheadSize best;
  double images_per_s = 0;
  int cores = 1;
  // Of the recipe.
  std::int64_t threads = 0;  // 0: automatic
  std::int64_t prefetch = 4;
  bool threads_searched = false;
  bool is_streamed = false;
  bool has_cache = false;  // data.cache
  std::int64_t image_size = 224;
  // Of the training set.
  double mean_pixels = 0;  // width x height of the stored images
  double raw_share = 0;    // share of the images that need no decoding
  std::int64_t shards = 0;
  double shard_bytes = 0;  // mean size; 0: folders, or not known
  bool is_remote = false;
  // Of the job.
  int ranks = 1;
  std::optional<double> needed_per_s;  // images that a rank trains on in a second, without waiting
  std::optional<double> copy_share;    // share of a run's time for copies to the device
};

struct LoaderAdvice {
  std::string limit;  // "training", "read", "decode" or "augment"
  std::vector<std::string> changes;
};

// The limit is "training" if the loader is at least 5 % faster than needed. Otherwise it is the
// stage that takes most of a thread's time.
LoaderAdvice advise(const LoaderFacts& facts);

std::string advice_text(const LoaderFacts& facts, const LoaderAdvice& advice);
nlohmann::ordered_json advice_json(const LoaderFacts& facts, const LoaderAdvice& advice);

}  // namespace scaletrain::app
