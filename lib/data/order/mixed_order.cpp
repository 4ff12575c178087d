#include "lib/data/order/mixed_order.h"

#include <algorithm>
#include <utility>

#include "lib/data/order/permutation.h"

namespace scaletrain::data {
namespace {

constexpr std::int64_t kMixBlock = 4096;

std::vector<double> weights_of(const std::vector<MixedOrder::Source>& sources) {
  std::vector<double> weights;
  weights.reserve(sources.size());
  for (const MixedOrder::Source& source : sources) weights.push_back(source.weight);
  return weights;
}

}  // namespace

MixedOrder::MixedOrder(std::uint64_t seed, std::vector<Source> sources, std::int64_t size)
    : seed_(seed), sources_(std::move(sources)), turns_(weights_of(sources_)), size_(size) {}

SamplePlace MixedOrder::at(std::int64_t epoch, std::int64_t position) const {
  std::int64_t place_in_epoch = position;
  if (sources_.size() > 1) {
    const std::int64_t block = position / kMixBlock, begin = block * kMixBlock;
    const Permutation places(permutation_key(seed_, core::DrawPurpose::kSourceOrder, epoch, block),
                             std::min(kMixBlock, size_ - begin));
    place_in_epoch = begin + places(position - begin);
  }
  const SourceTurns::Turn turn = turns_.at(epoch * size_ + place_in_epoch);
  const Source& source = sources_[turn.source];
  SamplePlace place =
      source.order->at(turn.number / source.order->size(), turn.number % source.order->size());
  place.shard += source.first_shard;
  return place;
}

}  // namespace scaletrain::data
