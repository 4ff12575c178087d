#include "lib/data/loader/make_order.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "lib/core/error.h"
#include "lib/data/order/balanced_order.h"
#include "lib/data/order/mixed_order.h"
#include "lib/data/order/permutation.h"
#include "lib/data/order/repeated_order.h"
#include "lib/data/order/streamed_order.h"

namespace scaletrain::data {
namespace {

// Seeds differ by source; otherwise sources of the same size would be shuffled alike.
std::uint64_t seed_of_source(std::uint64_t seed, std::size_t number) {
  if (number == 0) return seed;
  return permutation_key(seed, core::DrawPurpose::kSourceOrder, -1,
                         static_cast<std::int64_t>(number));
}

// Returns the single label of a sample, as class-balanced sampling needs it.
std::int64_t single_label(const Dataset& dataset, std::int64_t shard, std::int64_t sample) {
  const std::int64_t label = dataset.label(shard, sample);
  if (label >= 0) return label;
  throw core::DataError(dataset.label_place(shard, dataset.read(shard, sample)),
                        "is a list of classes, and its source is balanced by class",
                        R"(leave out "balanced")");
}

std::shared_ptr<const Order> order_of_part(const Dataset& dataset, const DatasetPart& part,
                                           std::int64_t first_shard, std::uint64_t seed,
                                           std::int64_t shuffle_shards) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t i = 0; i < part.shards; ++i) {
    sizes.push_back(dataset.shard_size(first_shard + i));
  }
  if (!part.balanced) {
    return std::make_shared<IndexedOrder>(seed, std::move(sizes), shuffle_shards);
  }
  return std::make_shared<BalancedOrder>(
      seed, sizes, [&dataset, first_shard](std::int64_t shard, std::int64_t sample) {
        return single_label(dataset, first_shard + shard, sample);
      });
}

std::shared_ptr<const Order> streamed_order(const std::shared_ptr<const Dataset>& dataset,
                                            const OrderOptions& options) {
  const std::vector<DatasetPart> parts = dataset->parts();
  std::vector<StreamedSource> sources;
  std::int64_t first_shard = 0;
  for (const DatasetPart& part : parts) {
    StreamedSource source{
        .lane = {.seed = seed_of_source(options.seed, sources.size()),
                 .shards = part.shards,
                 .shuffle_shards = options.shuffle_shards},
        .size_of = [dataset, first_shard](
                       std::int64_t shard) { return dataset->shard_size(first_shard + shard); },
        .weight = part.weight};
    if (parts.size() > 1) source.lane.place = fmt::format("/data/train/sources/{}", sources.size());
    if (part.balanced) {
      source.own = order_of_part(*dataset, part, first_shard, source.lane.seed, 0);
    }
    sources.push_back(std::move(source));
    first_shard += part.shards;
  }
  const std::int64_t samples =
      options.samples_per_epoch == 0 ? dataset->size() : options.samples_per_epoch;
  const std::int64_t blocks_of_batch = options.global_batch / options.block;
  return std::make_shared<StreamedOrder>(
      StreamedOptions{.seed = options.seed,
                      .lanes = options.lanes,
                      .block = options.block,
                      .blocks = samples / options.global_batch * blocks_of_batch},
      std::move(sources));
}

std::shared_ptr<const Order> indexed_order(const Dataset& dataset, const OrderOptions& options) {
  const std::vector<DatasetPart> parts = dataset.parts();
  std::vector<MixedOrder::Source> sources;
  std::int64_t first_shard = 0;
  for (const DatasetPart& part : parts) {
    const std::uint64_t seed = seed_of_source(options.seed, sources.size());
    sources.push_back({order_of_part(dataset, part, first_shard, seed, options.shuffle_shards),
                       first_shard, part.weight});
    first_shard += part.shards;
  }
  if (sources.size() == 1 && options.samples_per_epoch == 0) return sources.front().order;
  const std::int64_t size =
      options.samples_per_epoch == 0 ? dataset.size() : options.samples_per_epoch;
  return std::make_shared<MixedOrder>(options.seed, std::move(sources), size);
}

}  // namespace

std::shared_ptr<const Order> make_order(const std::shared_ptr<const Dataset>& set,
                                        const OrderOptions& options) {
  if (options.streamed) return streamed_order(set, options);
  std::shared_ptr<const Order> once = indexed_order(*set, options);
  if (options.repeats == 1) return once;
  return std::make_shared<RepeatedOrder>(std::move(once), options.repeats, options.global_batch,
                                         options.growing);
}

}  // namespace scaletrain::data
