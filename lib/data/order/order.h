// Global data order: the sample at each position of an epoch. It is a pure function of the seed,
// the epoch, the shard sizes and the options of the order.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/core/philox.h"
#include "lib/data/order/shard_offsets.h"

namespace scaletrain::data {

inline constexpr int kOrderVersion = 1;  // stored in state.json; changes with the function

class Order {
 public:
  virtual ~Order() = default;

  // Returns the number of positions in an epoch.
  virtual std::int64_t size() const = 0;

  // Returns the sample at `position` (0 .. size-1) of `epoch`. May be called from any thread.
  virtual SamplePlace at(std::int64_t epoch, std::int64_t position) const = 0;

  // Returns a sample that replaces the bad one at `position`. `draws` is keyed by (seed, epoch,
  // position) and returns another sample at each call.
  virtual SamplePlace replacement(std::int64_t epoch, std::int64_t position,
                                  core::Philox& draws) const;
};

// Indexed order: every sample once an epoch. A look-up takes a keyed permutation
// (lib/data/order/permutation.h) and a binary search over the shards. With groups, an epoch's first
// look-up also sums the sizes of the permuted shards.
class IndexedOrder : public Order {
 public:
  // `shard_sizes`: samples of each shard. `shuffle_shards`: samples are permuted within groups of
  // so many shards of the permuted shard list; 0: over everything.
  IndexedOrder(std::uint64_t seed, std::vector<std::int64_t> shard_sizes,
               std::int64_t shuffle_shards);
  ~IndexedOrder() override;

  std::int64_t size() const override;
  SamplePlace at(std::int64_t epoch, std::int64_t position) const override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace scaletrain::data
