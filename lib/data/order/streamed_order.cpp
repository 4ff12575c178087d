#include "lib/data/order/streamed_order.h"

#include <utility>

#include "lib/data/order/permutation.h"

namespace scaletrain::data {
namespace {

constexpr std::int64_t kLaneMixBlock = 256;  // turns of a lane within which sources are shuffled

std::vector<double> weights_of(const std::vector<StreamedSource>& sources) {
  std::vector<double> weights;
  weights.reserve(sources.size());
  for (const StreamedSource& source : sources) weights.push_back(source.weight);
  return weights;
}

// Returns the first element of each list, then the second of each, and so on.
std::vector<std::int64_t> alternate(const std::vector<std::vector<std::int64_t>>& lists) {
  std::vector<std::int64_t> result;
  for (std::size_t i = 0, before = 1; result.size() != before; ++i) {
    before = result.size();
    for (const std::vector<std::int64_t>& list : lists) {
      if (i < list.size()) result.push_back(list[i]);
    }
  }
  return result;
}

}  // namespace

class StreamedOrder::Source {
 public:
  Source(StreamedSource given, std::int64_t lanes, std::int64_t first_shard)
      : lane_count_(lanes), first_shard_(first_shard), own_(std::move(given.own)) {
    given.lane.lanes = lanes;
    for (std::int64_t lane = 0; lane < lanes && !own_; ++lane) {
      lanes_.push_back(std::make_unique<StreamedLane>(given.lane, lane, given.size_of));
    }
  }

  bool has_own_order() const { return own_ != nullptr; }

  // Returns sample `number` that a lane takes from the source.
  SamplePlace at(std::int64_t lane, std::int64_t number) const {
    if (!own_) return in_all(lanes_[static_cast<std::size_t>(lane)]->at(number));
    const std::int64_t running = number * lane_count_ + lane;
    return in_all(own_->at(running / own_->size(), running % own_->size()));
  }

  SamplePlace replacement(std::int64_t lane, std::int64_t number, core::Philox& draws) const {
    if (!own_) return in_all(lanes_[static_cast<std::size_t>(lane)]->replacement(number, draws));
    const std::int64_t running = number * lane_count_ + lane;
    return in_all(own_->replacement(running / own_->size(), running % own_->size(), draws));
  }

  std::vector<std::int64_t> upcoming(std::int64_t lane, std::int64_t number) const {
    std::vector<std::int64_t> shards = lanes_[static_cast<std::size_t>(lane)]->upcoming(number);
    for (std::int64_t& shard : shards) shard += first_shard_;
    return shards;
  }

 private:
  SamplePlace in_all(SamplePlace place) const {
    place.shard += first_shard_;
    return place;
  }

  std::int64_t lane_count_, first_shard_;
  std::shared_ptr<const Order> own_;
  std::vector<std::unique_ptr<StreamedLane>> lanes_;  // empty for a source with an order of its own
};

StreamedOrder::StreamedOrder(const StreamedOptions& options, std::vector<StreamedSource> sources)
    : options_(options), turns_(weights_of(sources)) {
  std::int64_t first_shard = 0;
  for (StreamedSource& source : sources) {
    const std::int64_t shards = source.lane.shards;
    sources_.emplace_back(std::move(source), options.lanes, first_shard);
    first_shard += shards;
  }
}

StreamedOrder::~StreamedOrder() = default;

SamplePlace StreamedOrder::at(std::int64_t epoch, std::int64_t position) const {
  const PlaceInLane place = place_in_lane(epoch, position);
  const SourceTurns::Turn turn = turn_at(place);
  return sources_[turn.source].at(place.lane, turn.number);
}

SamplePlace StreamedOrder::replacement(std::int64_t epoch, std::int64_t position,
                                       core::Philox& draws) const {
  const PlaceInLane place = place_in_lane(epoch, position);
  const SourceTurns::Turn turn = turn_at(place);
  return sources_[turn.source].replacement(place.lane, turn.number, draws);
}

std::vector<std::int64_t> StreamedOrder::upcoming(std::int64_t lane, std::int64_t epoch,
                                                  std::int64_t position) const {
  const std::int64_t block = epoch * options_.blocks + position / options_.block;
  std::int64_t number = (block + options_.lanes - 1 - lane) / options_.lanes * options_.block;
  if (sources_.size() > 1) number = number / kLaneMixBlock * kLaneMixBlock;
  const std::vector<std::int64_t> numbers = turns_.before(number, phase(lane));
  std::vector<std::vector<std::int64_t>> lists;
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    if (sources_[i].has_own_order()) continue;
    lists.push_back(sources_[i].upcoming(lane, numbers[i]));
    if (lists.back().empty()) return {};
  }
  return alternate(lists);
}

StreamedOrder::PlaceInLane StreamedOrder::place_in_lane(std::int64_t epoch,
                                                        std::int64_t position) const {
  const std::int64_t block = epoch * options_.blocks + position / options_.block;
  return {block % options_.lanes,
          block / options_.lanes * options_.block + position % options_.block};
}

SourceTurns::Turn StreamedOrder::turn_at(const PlaceInLane& place) const {
  if (sources_.size() == 1) return {0, place.number};
  const std::int64_t block = place.number / kLaneMixBlock, begin = block * kLaneMixBlock;
  const Permutation turns(
      permutation_key(options_.seed, core::DrawPurpose::kSourceOrder, block, place.lane),
      kLaneMixBlock);
  return turns_.at(begin + turns(place.number - begin), phase(place.lane));
}

// Lanes have evenly spaced phases, so that they do not all begin with the same source.
std::uint64_t StreamedOrder::phase(std::int64_t lane) const {
  return (static_cast<std::uint64_t>(lane) << 32) / static_cast<std::uint64_t>(options_.lanes);
}

}  // namespace scaletrain::data
