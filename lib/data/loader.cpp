#include "lib/data/loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lib/core/error.h"
#include "lib/data/order.h"
#include "lib/data/read_ahead.h"
#include "lib/data/shard_offsets.h"

namespace scaletrain::data {
namespace {

SampleSource make_source(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options) {
  SampleSource source;
  source.dataset = std::move(dataset);
  source.image_size = options.image_size;
  source.num_classes = options.num_classes;
  source.seed = options.seed;
  return source;
}

}  // namespace

class TrainLoader::Impl {
 public:
  Impl(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options, RankSlice slice,
       core::BufferPool& pool)
      : slice_(slice),
        global_batch_(slice.per_device * slice.accumulate * slice.world_size),
        steps_(dataset->size() / global_batch_) {
    if (steps_ == 0) {
      throw core::RecipeError(
          "/batch",
          fmt::format("a global batch of {} samples (per_device {} x accumulate {} x {} ranks) is "
                      "more than the training set's {}",
                      global_batch_, slice.per_device, slice.accumulate, slice.world_size,
                      dataset->size()),
          "lower per_device or accumulate, use fewer ranks, or add data");
    }
    const auto order =
        std::make_shared<IndexedOrder>(options.seed, shard_sizes(*dataset), options.shuffle_shards);
    SampleSource source = make_source(std::move(dataset), options);
    source.transforms = make_transforms(options.augment);
    source.place = [order](std::int64_t epoch, std::int64_t position) {
      return order->at(epoch, position);
    };
    batches_ = std::make_unique<ReadAhead>(
        std::move(source), [this](std::int64_t number) { return job(number); }, options.threads,
        options.prefetch, pool);
  }

  ImageBatch next() { return std::move(*batches_->next()); }  // there is no end
  void seek(std::int64_t epoch, std::int64_t step) {
    batches_->seek((epoch * steps_ + step) * slice_.accumulate);
  }
  std::int64_t steps_per_epoch() const { return steps_; }

 private:
  // Micro-step j of step k: the block of per_device positions at k G + (j n + r) b.
  BatchJob job(std::int64_t number) const {
    const std::int64_t micro_step = number % slice_.accumulate;
    const std::int64_t step = number / slice_.accumulate;
    const std::int64_t block = micro_step * slice_.world_size + slice_.rank;
    return {step / steps_, step % steps_ * global_batch_ + block * slice_.per_device,
            slice_.per_device};
  }

  RankSlice slice_;
  std::int64_t global_batch_;
  std::int64_t steps_;  // an epoch
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
      : slice_(slice), size_(dataset->size()) {
    const auto offsets = std::make_shared<ShardOffsets>(shard_sizes(*dataset));
    SampleSource source = make_source(std::move(dataset), options);
    source.place = [offsets](std::int64_t /*epoch*/, std::int64_t position) {
      return offsets->locate(position);
    };
    batches_ = std::make_unique<ReadAhead>(
        std::move(source), [this](std::int64_t number) { return job(number); }, options.threads,
        options.prefetch, pool);
  }

  std::optional<ImageBatch> next() { return batches_->next(); }
  void rewind() { batches_->seek(0); }

 private:
  // Block i of per_device positions goes to rank i mod n.
  std::optional<BatchJob> job(std::int64_t number) const {
    const std::int64_t begin = (number * slice_.world_size + slice_.rank) * slice_.per_device;
    if (begin >= size_) return std::nullopt;
    return BatchJob{0, begin, std::min(slice_.per_device, size_ - begin)};
  }

  RankSlice slice_;
  std::int64_t size_;
  std::unique_ptr<ReadAhead> batches_;
};

EvalLoader::EvalLoader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options,
                       RankSlice slice, core::BufferPool& pool)
    : impl_(std::make_unique<Impl>(std::move(dataset), options, slice, pool)) {}
EvalLoader::~EvalLoader() = default;
std::optional<ImageBatch> EvalLoader::next() { return impl_->next(); }
void EvalLoader::rewind() { impl_->rewind(); }

}  // namespace scaletrain::data
