// Mixes several data sources by weight.
//
// Among the first x positions of a run each source has its share of x, to within one sample:
// sources are counted, not drawn at random. Each source has its own epochs: no sample repeats
// before all samples of that source have been used. Within blocks of 4096 positions the sources
// take turns in a random order, while each source keeps its own order (shuffle_shards).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/data/order/order.h"
#include "lib/data/order/source_turns.h"

namespace scaletrain::data {

class MixedOrder : public Order {
 public:
  struct Source {
    std::shared_ptr<const Order> order;
    std::int64_t first_shard = 0;  // index of the source's first shard in the whole set
    double weight = 1;             // above 0
  };

  // `size`: positions of an epoch. A single source keeps its own order, divided into epochs of
  // `size`.
  MixedOrder(std::uint64_t seed, std::vector<Source> sources, std::int64_t size);

  std::int64_t size() const override { return size_; }
  SamplePlace at(std::int64_t epoch, std::int64_t position) const override;

 private:
  std::uint64_t seed_;
  std::vector<Source> sources_;
  SourceTurns turns_;
  std::int64_t size_;
};

}  // namespace scaletrain::data
