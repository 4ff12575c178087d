// Streams of decoded images for one rank (lib/data/loader/batch_stream.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/core/buffer.h"
#include "lib/data/image/decode.h"
#include "lib/data/loader/batch_stream.h"
#include "lib/data/loader/class_flags.h"
#include "lib/data/loader/image_batch.h"
#include "lib/data/order/batch_job.h"
#include "lib/data/set/dataset.h"
#include "lib/recipe/catalog/values.h"
#include "lib/recipe/sections/data/data.h"
#include "lib/recipe/sections/data/resize_ramp.h"

namespace scaletrain::data {

struct LoaderOptions {
  std::int64_t image_size = 224;
  std::optional<recipe::ResizeRamp> resize_ramp = {};  // training only
  std::int64_t num_classes = 0;                        // labels are 0 .. num_classes - 1
  bool multi_label = false;                            // a sample may have any number of classes
  ListFormat list_format = ListFormat::kAuto;          // how list labels are read
  std::uint64_t seed = 0;
  int threads = 1;
  bool search_threads = false;  // training only: `threads` and `prefetch` are the search's start
  int prefetch = 4;             // batches decoded ahead, at least 1
  std::int64_t shuffle_shards = 0;
  bool streamed = false;  // true: streamed order; false: indexed order
  std::int64_t lanes = 64;
  std::int64_t samples_per_epoch = 0;  // 0: size of the set
  bool skip_bad = false;  // replaces samples that cannot be decoded; evaluation leaves them out
  std::vector<recipe::Component> augment;  // training only
  std::int64_t repeats = 1;                // copies of a sample in a global batch; training only
  std::int64_t eval_resize = 0;            // shorter side in evaluation; 0: image_size
  std::string eval_filter = "bilinear";
  recipe::Normalize normalize;  // fill colour of areas that a transform leaves empty
  DecodeOptions decode;
};

// Loader options of a recipe's `data` section. The caller sets the number of classes, the seed and
// an automatic number of threads.
LoaderOptions loader_options(const recipe::Data& data);

// Opens a training stream: shuffled and augmented. Batch number m of a rank is micro-step m mod
// accumulate of a step. Buffers come from `pool` (pinned on a GPU machine), which must outlive the
// stream. Throws core::RecipeError for fewer samples than one global batch. Errors name a damaged
// sample by shard, member and byte offset.
std::unique_ptr<BatchStream> train_images(std::shared_ptr<const Dataset> dataset,
                                          const LoaderOptions& options, ReaderSlice slice,
                                          core::BufferPool& pool);

// Opens an evaluation stream without augmentation: resizes the shorter side to eval_resize and
// crops the centre. Blocks of per_device samples go to the ranks in turn.
std::unique_ptr<BatchStream> eval_images(std::shared_ptr<const Dataset> dataset,
                                         const LoaderOptions& options, ReaderSlice slice,
                                         core::BufferPool& pool);

}  // namespace scaletrain::data
