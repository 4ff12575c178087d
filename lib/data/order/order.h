// The global data order: which sample stands at a position of an epoch. A pure function of the
// seed, the epoch, the shard sizes and the options of the order, and of nothing else.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/core/philox.h"
#include "lib/data/order/shard_offsets.h"

namespace scaletrain::data {

inline constexpr int kOrderVersion = 1;  // kept in state.json; changes when the function does

class Order {
 public:
  virtual ~Order() = default;

  // Positions of an epoch.
  virtual std::int64_t size() const = 0;

  // The sample at `position` (0 .. size-1) of `epoch`; any thread.
  virtual SamplePlace at(std::int64_t epoch, std::int64_t position) const = 0;

  // Returns a sample to use in place of the bad one at `position`. `draws` is keyed by (seed,
  // epoch, position) and gives another one each time.
  virtual SamplePlace replacement(std::int64_t epoch, std::int64_t position,
                                  core::Philox& draws) const;
};

// Every sample once an epoch. A look-up costs a keyed permutation (lib/data/order/permutation.h)
// and a binary search over the shards; with groups, an epoch's first look-up also sums up the
// permuted shards' sizes.
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
