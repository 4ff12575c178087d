// The order for shards that are better read one after the other, as from an object store
// (/data/order "streamed").
//
// A fixed number of lanes share the shards of each source (lib/data/order/streamed_lane.h). The
// blocks of a run, counted through its epochs, come from the lanes in turn, so that rank r of n, n
// a divisor of the lanes, needs the shards of the lanes r, r + n, ... alone, and still the order
// does not depend on n.
//
// Several sources take turns within each lane by their weights (lib/data/order/source_turns.h),
// shuffled within 256 turns, which keeps a source's own order together. A source that has an order
// of its own (balanced) is not divided into lanes: its sample number k is that of lane k mod lanes,
// so that all ranks together go through it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/data/order/order.h"
#include "lib/data/order/source_turns.h"
#include "lib/data/order/streamed_lane.h"

namespace scaletrain::data {

struct StreamedOptions {
  std::uint64_t seed = 0;  // decides whose turn it is
  std::int64_t lanes = 64;
  std::int64_t block = 1;   // samples of a micro-batch
  std::int64_t blocks = 1;  // blocks of an epoch, over all ranks
};

// Shards that are numbered from 0 within their source.
struct StreamedSource {
  LaneOptions lane;  // lanes: the order's
  StreamedLane::SizeOf size_of;
  double weight = 1;                           // above 0
  std::shared_ptr<const Order> own = nullptr;  // an order that is not divided into lanes
};

class StreamedOrder : public Order {
 public:
  // At least one source; the shards of one come after another's.
  StreamedOrder(const StreamedOptions& options, std::vector<StreamedSource> sources);
  ~StreamedOrder() override;

  std::int64_t size() const override { return options_.blocks * options_.block; }

  std::int64_t lanes() const { return options_.lanes; }
  std::int64_t lane(std::int64_t epoch, std::int64_t position) const {
    return place_in_lane(epoch, position).lane;
  }

  // Throws core::DataError where the lane has no sample, and what size_of throws.
  SamplePlace at(std::int64_t epoch, std::int64_t position) const override;

  // Another sample of the group that the position's is from; of a source with an order of its own,
  // what that replaces it by.
  SamplePlace replacement(std::int64_t epoch, std::int64_t position,
                          core::Philox& draws) const override;

  // The shards that `lane` needs for its next block from `position` of `epoch` on and after that,
  // in order: two groups of each source. Looks up no size: returns {} while another thread looks
  // one up, or if sizes before it are not known yet. A source with an order of its own is left out.
  std::vector<std::int64_t> upcoming(std::int64_t lane, std::int64_t epoch,
                                     std::int64_t position) const;

 private:
  class Source;
  struct PlaceInLane {
    std::int64_t lane = 0, number = 0;  // sample `number` of the lane's whole way
  };
  PlaceInLane place_in_lane(std::int64_t epoch, std::int64_t position) const;
  SourceTurns::Turn turn_at(const PlaceInLane& place) const;
  std::uint64_t phase(std::int64_t lane) const;

  StreamedOptions options_;
  std::vector<Source> sources_;
  SourceTurns turns_;
};

}  // namespace scaletrain::data
