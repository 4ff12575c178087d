#include "lib/data/loader.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "lib/data/make_order.h"
#include "lib/data/order.h"
#include "lib/data/read_ahead.h"
#include "lib/data/sample_maker.h"
#include "lib/data/shard_offsets.h"
#include "lib/data/upcoming_shards.h"
#include "lib/recipe/lists.h"

namespace scaletrain::data {
namespace {

SampleSource make_source(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options) {
  SampleSource source;
  source.dataset = std::move(dataset);
  source.skip_bad = options.skip_bad;
  source.image_size = options.image_size;
  source.num_classes = options.num_classes;
  source.seed = options.seed;
  source.decode.exif_orientation = options.exif_orientation;
  return source;
}

Transforms eval_transforms(const LoaderOptions& options) {
  recipe::Component crop;
  choose(crop, *recipe::transforms().find("center_crop"));
  crop.options["resize"] = options.eval_resize;
  crop.options["filter"] = options.eval_filter;
  return make_transforms({crop});
}

std::unique_ptr<ReadAhead> read_images(const SampleSource& source, ReadAhead::JobOf job_of,
                                       const LoaderOptions& options, core::BufferPool& pool) {
  std::vector<std::unique_ptr<Maker>> makers;
  for (int i = 0; i < std::max(options.threads, 1); ++i) {
    makers.push_back(std::make_unique<SampleMaker>(source));
  }
  return std::make_unique<ReadAhead>(std::move(makers),
                                     options.image_size * options.image_size * kChannels,
                                     std::move(job_of), options.prefetch, pool);
}

}  // namespace

LoaderOptions loader_options(const recipe::Data& data) {
  return {.image_size = data.image_size,
          .threads = static_cast<int>(data.threads),
          .prefetch = static_cast<int>(data.prefetch),
          .shuffle_shards = data.shuffle_shards,
          .streamed = data.order == "streamed",
          .lanes = data.lanes,
          .samples_per_epoch = data.samples_per_epoch,
          .skip_bad = data.bad_samples.policy == "skip",
          .augment = data.train.augment,
          .repeats = data.train.repeats,
          .eval_resize = data.eval_resize,
          .eval_filter = data.eval_filter,
          .normalize = data.normalize,
          .exif_orientation = data.exif_orientation};
}

class TrainLoader::Impl {
 public:
  Impl(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options, RankSlice slice,
       core::BufferPool& pool)
      : slice_(slice),
        source_(make_source(std::move(dataset), options)),
        steps_(steps_of_epoch(slice, options.samples_per_epoch > 0 ? options.samples_per_epoch
                                                                   : source_.dataset->size())) {
    const std::shared_ptr<const Order> order = make_train_order(options);
    source_.transforms = make_transforms(options.augment, options.normalize);
    source_.place = [order](std::int64_t epoch, std::int64_t position) {
      return order->at(epoch, position);
    };
    source_.replacement = [order](std::int64_t epoch, std::int64_t position, core::Philox& draws) {
      return order->replacement(epoch, position, draws);
    };
    if (auto streamed = std::dynamic_pointer_cast<const StreamedOrder>(order)) {
      upcoming_.emplace(source_.dataset, std::move(streamed), slice_);
    }
    batches_ = read_images(
        source_, [this](std::int64_t number) { return job(number); }, options, pool);
  }

  ImageBatch next() { return std::move(*batches_->next()); }  // there is no end
  void seek(std::int64_t epoch, std::int64_t step) {
    batches_->seek((epoch * steps_ + step) * slice_.accumulate);
  }
  std::int64_t steps_per_epoch() const { return steps_; }

 private:
  BatchJob job(std::int64_t number) {
    const BatchJob planned = train_job(slice_, steps_, number);
    if (upcoming_) upcoming_->plan(number, planned);
    return planned;
  }

  std::shared_ptr<const Order> make_train_order(const LoaderOptions& options) const {
    if (options.streamed) recipe::check_lanes(options.lanes, slice_.world_size);
    return make_order(source_.dataset, {.seed = options.seed,
                                        .shuffle_shards = options.shuffle_shards,
                                        .samples_per_epoch = options.samples_per_epoch,
                                        .repeats = options.repeats,
                                        .streamed = options.streamed,
                                        .lanes = options.lanes,
                                        .block = slice_.per_device,
                                        .global_batch = slice_.global_batch()});
  }

  RankSlice slice_;
  SampleSource source_;                     // outlives the threads of batches_
  std::int64_t steps_;                      // an epoch
  std::optional<UpcomingShards> upcoming_;  // of a streamed order
  std::unique_ptr<ReadAhead> batches_;
};

TrainLoader::TrainLoader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options,
                         RankSlice slice, core::BufferPool& pool)
    : impl_(std::make_unique<Impl>(std::move(dataset), options, slice, pool)) {}
TrainLoader::~TrainLoader() = default;
ImageBatch TrainLoader::next() { return impl_->next(); }
void TrainLoader::seek(std::int64_t epoch, std::int64_t step) { impl_->seek(epoch, step); }
std::int64_t TrainLoader::steps_per_epoch() const { return impl_->steps_per_epoch(); }

class EvalLoader::Impl {
 public:
  Impl(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options, RankSlice slice,
       core::BufferPool& pool)
      : slice_(slice), size_(dataset->size()), source_(make_source(std::move(dataset), options)) {
    source_.transforms = eval_transforms(options);
    const auto offsets = std::make_shared<ShardOffsets>(shard_sizes(*source_.dataset));
    source_.place = [offsets](std::int64_t /*epoch*/, std::int64_t position) {
      return offsets->locate(position);
    };
    batches_ = read_images(
        source_, [this](std::int64_t number) { return eval_job(slice_, size_, number); }, options,
        pool);
  }

  std::optional<ImageBatch> next() { return batches_->next(); }
  void rewind() { batches_->seek(0); }

 private:
  RankSlice slice_;
  std::int64_t size_;
  SampleSource source_;
  std::unique_ptr<ReadAhead> batches_;
};

EvalLoader::EvalLoader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options,
                       RankSlice slice, core::BufferPool& pool)
    : impl_(std::make_unique<Impl>(std::move(dataset), options, slice, pool)) {}
EvalLoader::~EvalLoader() = default;
std::optional<ImageBatch> EvalLoader::next() { return impl_->next(); }
void EvalLoader::rewind() { impl_->rewind(); }

}  // namespace scaletrain::data
