#include "lib/data/loader/token_stream.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/core/clock.h"
#include "lib/data/loader/read_ahead.h"
#include "lib/data/order/order.h"
#include "lib/data/order/shard_offsets.h"
#include "lib/data/set/dataset.h"

namespace scaletrain::data {
namespace {

// State that the stream's threads share.
struct Windows {
  std::shared_ptr<const TokenSet> set;
  std::function<SamplePlace(std::int64_t epoch, std::int64_t position)> place;
};

class WindowMaker : public Maker {
 public:
  explicit WindowMaker(const Windows& windows) : windows_(windows) {}

  Made make(std::int64_t epoch, std::int64_t position, const Row& row) override {
    const core::SteadyTime start = core::now();
    const SamplePlace place = windows_.place(epoch, position);
    Made made;
    made.targets = windows_.set->read(place.shard, place.sample, row.values<std::int64_t>(kTokens),
                                      row.values<std::int64_t>(kNext));
    RawSample names;
    names.shard = windows_.set->name(place.shard);
    names.key = std::to_string(place.sample);
    made.digest = sample_digest(epoch, position, names);
    made.stages.read_s = core::seconds_since(start);
    return made;
  }

 private:
  const Windows& windows_;
};

std::unique_ptr<BatchStream> read_windows(const std::shared_ptr<const Windows>& windows,
                                          ReadAhead::JobOf job_of,
                                          const TokenLoaderOptions& options, core::BufferPool& pool,
                                          const ReaderSlice& slice,
                                          std::shared_ptr<const core::StepPlan> plan) {
  const ReadAheadSize start{.threads = std::max(options.threads, 1), .prefetch = options.prefetch};
  std::optional<ThreadSearch> search;
  if (options.search_threads && plan != nullptr) search.emplace(start);
  std::vector<std::unique_ptr<Maker>> makers;
  for (int i = 0; i < (search ? search->most().threads : start.threads); ++i) {
    makers.push_back(std::make_unique<WindowMaker>(*windows));
  }
  std::vector<Column> layout(2);
  layout[kTokens] = layout[kNext] = {Element::kInt64, windows->set->context()};
  return std::make_unique<ReadAheadStream>(
      windows,
      std::make_unique<ReadAhead>(std::move(makers), std::move(layout), std::move(job_of),
                                  options.prefetch, pool, search),
      slice, std::move(plan), [windows = windows.get()](std::int64_t epoch, std::int64_t position) {
        const SamplePlace place = windows->place(epoch, position);
        return windows->set->name(place.shard) + "/" + std::to_string(place.sample);
      });
}

}  // namespace

std::unique_ptr<BatchStream> train_windows(std::shared_ptr<const TokenSet> set,
                                           const TokenLoaderOptions& options, ReaderSlice slice,
                                           core::BufferPool& pool) {
  const auto order =
      std::make_shared<IndexedOrder>(options.seed, set->window_counts(), options.shuffle_files);
  const std::shared_ptr<const core::StepPlan> plan = plan_steps(slice, order->size());
  const auto windows = std::make_shared<const Windows>(Windows{
      std::move(set),
      [order](std::int64_t epoch, std::int64_t position) { return order->at(epoch, position); }});
  auto job_of = [slice, plan](std::int64_t number) { return train_job(slice, *plan, number); };
  return read_windows(windows, std::move(job_of), options, pool, slice, plan);
}

std::unique_ptr<BatchStream> eval_windows(std::shared_ptr<const TokenSet> set,
                                          const TokenLoaderOptions& options, ReaderSlice slice,
                                          core::BufferPool& pool) {
  const auto offsets = std::make_shared<ShardOffsets>(set->window_counts());
  const auto windows = std::make_shared<const Windows>(
      Windows{std::move(set), [offsets](std::int64_t /*epoch*/, std::int64_t position) {
                return offsets->locate(position);
              }});
  auto job_of = [slice, size = offsets->size()](std::int64_t number) {
    return eval_job(slice, size, number);
  };
  return read_windows(windows, std::move(job_of), options, pool, slice, nullptr);
}

}  // namespace scaletrain::data
