// Decoded image batches for one rank, in the global data order, read ahead by threads.
//
// Position p of an epoch holds the same sample whatever the number of ranks, threads or restarts;
// a rank reads its blocks of every global batch (lib/data/order.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/core/buffer.h"
#include "lib/data/bad_sample.h"
#include "lib/data/batch_job.h"
#include "lib/data/dataset.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::data {

// Seconds that threads spent, summed up over samples.
struct StageTimes {
  double read_s = 0, decode_s = 0, augment_s = 0;

  StageTimes& operator+=(const StageTimes& other) {
    read_s += other.read_s;
    decode_s += other.decode_s;
    augment_s += other.augment_s;
    return *this;
  }
};

struct ImageBatch {
  std::span<std::uint8_t> pixels;  // [count, image_size, image_size, 3] row-major RGB, 0..255
  std::span<std::int64_t> labels;  // [count], 0..num_classes-1
  std::int64_t count = 0;
  std::int64_t epoch = 0;
  std::int64_t position = 0;       // of the first sample, in the epoch
  std::uint64_t digest = 0;        // sum mod 2^64 of sample_digest() of the batch's samples
  double wait_s = 0;               // how long next() blocked for it
  StageTimes stages;               // of its samples
  std::vector<BadSample> skipped;  // samples tried at its positions that do not decode
  core::Buffer storage;            // returns to the caller's pool when the batch is destroyed
};

struct LoaderOptions {
  std::int64_t image_size = 224;
  std::int64_t num_classes = 0;  // labels must be below
  std::uint64_t seed = 0;
  int threads = 1;
  int prefetch = 4;  // batches decoded ahead, at least 1
  std::int64_t shuffle_shards = 0;
  bool streamed = false;  // the order: indexed otherwise
  std::int64_t lanes = 64;
  std::int64_t samples_per_epoch = 0;  // 0: as many as the set has
  bool skip_bad = false;  // samples that do not decode are replaced, in evaluation left out
  std::vector<recipe::Component> augment;  // of training
  std::int64_t repeats = 1;                // of a sample in a global batch of training
  std::int64_t eval_resize = 0;            // shorter side in evaluation; 0: image_size
  std::string eval_filter = "bilinear";
  recipe::Normalize normalize;  // for the colour of what a transform leaves empty
  bool exif_orientation = false;
};

// What a recipe's data ask for; classes, seed and an automatic number of threads are the caller's.
LoaderOptions loader_options(const recipe::Data& data);

// Training batches: shuffled, endless over epochs, augmented. Batch number m of a rank is
// micro-step m mod accumulate of a step.
class TrainLoader {
 public:
  // Nothing is read before the first seek() or next(). Buffers come from `pool` (pinned on a GPU
  // machine), which must outlive the loader. Throws core::RecipeError for fewer samples than one
  // global batch.
  TrainLoader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options, RankSlice slice,
              core::BufferPool& pool);
  ~TrainLoader();  // stops and joins the threads

  // The next micro-batch in order; blocks while it is not decoded; goes on with the next epoch at
  // an epoch's end. One caller at a time. Throws core::DataError naming shard, member and byte
  // offset of a damaged sample, again until seek().
  ImageBatch next();

  // Goes on reading ahead from step `step` of `epoch`, both from 0; drops what was read before.
  void seek(std::int64_t epoch, std::int64_t step);

  std::int64_t steps_per_epoch() const;  // floor(N / G)

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Evaluation batches: every sample of the set exactly once over all ranks, in file order, without
// padding; the last batch may be short, one with bad samples too (even empty), and ranks may differ
// by a batch. Not augmented: the shorter side is resized to eval_resize and the centre is cropped.
// Blocks of per_device samples go to the ranks in turn.
class EvalLoader {
 public:
  EvalLoader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options, RankSlice slice,
             core::BufferPool& pool);
  ~EvalLoader();

  std::optional<ImageBatch> next();  // nullopt at the end
  void rewind();                     // starts from the first batch again

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace scaletrain::data
