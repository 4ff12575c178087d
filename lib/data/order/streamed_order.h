// Streamed data order, for shards that are best read sequentially, as from an object store
// (/data/order "streamed").
//
// A fixed number of lanes share the shards of each source (lib/data/order/streamed_lane.h). The
// blocks of a run, counted over all epochs, come from the lanes in turn. If n ranks divide the
// lanes, rank r needs only the shards of lanes r, r + n, ..., and the order does not depend on n.
//
// Several sources take turns within each lane by weight (lib/data/order/source_turns.h), shuffled
// within 256 turns, while each source keeps its own order. A source with an order of its own
// (balanced) is not divided into lanes: lane k mod lanes reads its sample k, so that all ranks
// together read all of it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/data/order/order.h"
#include "lib/data/order/source_turns.h"
#include "lib/data/order/streamed_lane.h"

namespace scaletrain::data {

struct StreamedOptions {
  std::uint64_t seed = 0;  // decides which source is next
  std::int64_t lanes = 64;
  std::int64_t block = 1;   // samples of a micro-batch
  std::int64_t blocks = 1;  // blocks of an epoch, over all ranks
};

// Shards that are numbered from 0 within their source.
struct StreamedSource {
  LaneOptions lane;  // its `lanes` are those of the order
  StreamedLane::SizeOf size_of;
  double weight = 1;                           // above 0
  std::shared_ptr<const Order> own = nullptr;  // an order that is not divided into lanes
};

class StreamedOrder : public Order {
 public:
  // Needs at least one source. Shards are numbered source after source.
  StreamedOrder(const StreamedOptions& options, std::vector<StreamedSource> sources);
  ~StreamedOrder() override;

  std::int64_t size() const override { return options_.blocks * options_.block; }

  std::int64_t lanes() const { return options_.lanes; }
  std::int64_t lane(std::int64_t epoch, std::int64_t position) const {
    return place_in_lane(epoch, position).lane;
  }

  // Throws core::DataError if the lane has no sample, and the errors of size_of.
  SamplePlace at(std::int64_t epoch, std::int64_t position) const override;

  // Returns another sample of the group that the position's sample comes from; a source with an
  // order of its own chooses the replacement itself.
  SamplePlace replacement(std::int64_t epoch, std::int64_t position,
                          core::Philox& draws) const override;

  // Returns the shards that `lane` needs from its next block after `position` of `epoch` on, in
  // order: two groups of each source. Looks up no size: returns {} while another thread looks one
  // up, or if earlier sizes are not known yet. Sources that are not streamed (balanced ones) are
  // left out.
  std::vector<std::int64_t> upcoming(std::int64_t lane, std::int64_t epoch,
                                     std::int64_t position) const;

 private:
  class Source;
  struct PlaceInLane {
    std::int64_t lane = 0, number = 0;  // sample `number` of the lane, over all passes
  };
  PlaceInLane place_in_lane(std::int64_t epoch, std::int64_t position) const;
  SourceTurns::Turn turn_at(const PlaceInLane& place) const;
  std::uint64_t phase(std::int64_t lane) const;

  StreamedOptions options_;
  std::vector<Source> sources_;
  SourceTurns turns_;
};

}  // namespace scaletrain::data
