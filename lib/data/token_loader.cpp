#include "lib/data/token_loader.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "lib/core/clock.h"
#include "lib/data/dataset.h"
#include "lib/data/order.h"
#include "lib/data/read_ahead.h"
#include "lib/data/shard_offsets.h"

namespace scaletrain::data {
namespace {

using PlaceOf = std::function<SamplePlace(std::int64_t epoch, std::int64_t position)>;

class WindowMaker : public Maker {
 public:
  WindowMaker(const TokenSet& set, const PlaceOf& place_of) : set_(set), place_of_(place_of) {}

  Made make(std::int64_t epoch, std::int64_t position, std::span<std::uint8_t> bytes) override {
    const core::SteadyTime start = core::now();
    const SamplePlace place = place_of_(epoch, position);
    set_.read(place.shard, place.sample,
              {reinterpret_cast<std::int64_t*>(bytes.data()), bytes.size() / sizeof(std::int64_t)});
    RawSample names;
    names.shard = set_.name(place.shard);
    names.key = std::to_string(place.sample);
    Made made;
    made.digest = sample_digest(epoch, position, names);
    made.stages.read_s = core::seconds_since(start);
    return made;
  }

 private:
  const TokenSet& set_;
  const PlaceOf& place_of_;
};

// The window's bytes as the image loader's batch has them.
TokenBatch token_batch(ImageBatch&& bytes) {
  TokenBatch batch;
  batch.tokens = {reinterpret_cast<std::int64_t*>(bytes.pixels.data()),
                  bytes.pixels.size() / sizeof(std::int64_t)};
  batch.count = bytes.count;
  batch.epoch = bytes.epoch;
  batch.digest = bytes.digest;
  batch.wait_s = bytes.wait_s;
  batch.read_s = bytes.stages.read_s;
  batch.storage = std::move(bytes.storage);
  return batch;
}

std::unique_ptr<ReadAhead> read_windows(const TokenSet& set, const PlaceOf& place_of,
                                        ReadAhead::JobOf job_of, const TokenLoaderOptions& options,
                                        core::BufferPool& pool) {
  std::vector<std::unique_ptr<Maker>> makers;
  for (int i = 0; i < std::max(options.threads, 1); ++i) {
    makers.push_back(std::make_unique<WindowMaker>(set, place_of));
  }
  const auto window_bytes = (set.context() + 1) * static_cast<std::int64_t>(sizeof(std::int64_t));
  return std::make_unique<ReadAhead>(std::move(makers), window_bytes, std::move(job_of),
                                     options.prefetch, pool);
}

}  // namespace

class TokenLoader::Impl {
 public:
  Impl(std::shared_ptr<const TokenSet> set, const TokenLoaderOptions& options, RankSlice slice,
       core::BufferPool& pool)
      : slice_(slice), set_(std::move(set)) {
    const auto order =
        std::make_shared<IndexedOrder>(options.seed, set_->window_counts(), options.shuffle_files);
    steps_ = steps_of_epoch(slice, order->size());
    place_of_ = [order](std::int64_t epoch, std::int64_t position) {
      return order->at(epoch, position);
    };
    batches_ = read_windows(
        *set_, place_of_, [this](std::int64_t number) { return train_job(slice_, steps_, number); },
        options, pool);
  }

  TokenBatch next() { return token_batch(std::move(*batches_->next())); }  // there is no end
  void seek(std::int64_t epoch, std::int64_t step) {
    batches_->seek((epoch * steps_ + step) * slice_.accumulate);
  }
  std::int64_t steps_per_epoch() const { return steps_; }

 private:
  RankSlice slice_;
  std::shared_ptr<const TokenSet> set_;
  std::int64_t steps_ = 0;
  PlaceOf place_of_;
  std::unique_ptr<ReadAhead> batches_;
};

TokenLoader::TokenLoader(std::shared_ptr<const TokenSet> set, const TokenLoaderOptions& options,
                         RankSlice slice, core::BufferPool& pool)
    : impl_(std::make_unique<Impl>(std::move(set), options, slice, pool)) {}
TokenLoader::~TokenLoader() = default;
TokenBatch TokenLoader::next() { return impl_->next(); }
void TokenLoader::seek(std::int64_t epoch, std::int64_t step) { impl_->seek(epoch, step); }
std::int64_t TokenLoader::steps_per_epoch() const { return impl_->steps_per_epoch(); }

class TokenEvalLoader::Impl {
 public:
  Impl(std::shared_ptr<const TokenSet> set, const TokenLoaderOptions& options, RankSlice slice,
       core::BufferPool& pool)
      : slice_(slice), set_(std::move(set)), offsets_(set_->window_counts()) {
    place_of_ = [this](std::int64_t /*epoch*/, std::int64_t position) {
      return offsets_.locate(position);
    };
    batches_ = read_windows(
        *set_, place_of_,
        [this](std::int64_t number) { return eval_job(slice_, offsets_.size(), number); }, options,
        pool);
  }

  std::optional<TokenBatch> next() {
    std::optional<ImageBatch> bytes = batches_->next();
    if (!bytes) return std::nullopt;
    return token_batch(std::move(*bytes));
  }
  void rewind() { batches_->seek(0); }

 private:
  RankSlice slice_;
  std::shared_ptr<const TokenSet> set_;
  ShardOffsets offsets_;
  PlaceOf place_of_;
  std::unique_ptr<ReadAhead> batches_;
};

TokenEvalLoader::TokenEvalLoader(std::shared_ptr<const TokenSet> set,
                                 const TokenLoaderOptions& options, RankSlice slice,
                                 core::BufferPool& pool)
    : impl_(std::make_unique<Impl>(std::move(set), options, slice, pool)) {}
TokenEvalLoader::~TokenEvalLoader() = default;
std::optional<TokenBatch> TokenEvalLoader::next() { return impl_->next(); }
void TokenEvalLoader::rewind() { impl_->rewind(); }

}  // namespace scaletrain::data
