// The order for shards that are better read one after the other, as from an object store
// (/data/order "streamed").
//
// A fixed number of lanes share the shards: shard s is lane s mod lanes'. Where there are fewer
// shards than lanes, lanes share a shard, each with every m-th sample of it. The blocks of a run,
// counted through its epochs, come from the lanes in turn, so that rank r of n, n a divisor of the
// lanes, needs the shards of the lanes r, r + n, ... alone, and still the order does not depend on
// n. A lane permutes its shards, and samples within groups of shuffle_shards of them; at its end it
// goes on with its next pass, in another order, whatever the other lanes do.
//
// How many samples a shard has is asked when the lane comes to it, or when a later position is
// asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "lib/data/order/order.h"

namespace scaletrain::data {

struct StreamedOptions {
  std::uint64_t seed = 0;
  std::int64_t shards = 0;
  std::int64_t lanes = 64;
  std::int64_t shuffle_shards = 1;  // 0 is 1
  std::int64_t block = 1;           // samples of a micro-batch
  std::int64_t blocks = 1;          // of an epoch, over all ranks
};

class StreamedOrder : public Order {
 public:
  // Samples of a shard; may open it. Called by any thread, not twice at once for one lane.
  using SizeOf = std::function<std::int64_t(std::int64_t shard)>;

  StreamedOrder(const StreamedOptions& options, const SizeOf& size_of);
  ~StreamedOrder() override;

  std::int64_t size() const override { return options_.blocks * options_.block; }

  std::int64_t lanes() const { return options_.lanes; }
  std::int64_t lane(std::int64_t epoch, std::int64_t position) const {
    return turn(epoch, position).lane;
  }

  // Throws core::DataError where the lane has no sample, and what size_of throws.
  SamplePlace at(std::int64_t epoch, std::int64_t position) const override;

  // Another sample of the group that the position's is from.
  SamplePlace replacement(std::int64_t epoch, std::int64_t position,
                          core::Philox& draws) const override;

  // The shards that `lane` needs for its next block from `position` of `epoch` on and after that,
  // in order: two groups of them. Asks for no size: empty while another thread does, and where the
  // way to there is not known yet.
  std::vector<std::int64_t> upcoming(std::int64_t lane, std::int64_t epoch,
                                     std::int64_t position) const;

 private:
  class Lane;
  struct Turn {
    std::int64_t lane = 0, number = 0;  // sample `number` of the lane's whole way
  };
  Turn turn(std::int64_t epoch, std::int64_t position) const;

  StreamedOptions options_;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace scaletrain::data
