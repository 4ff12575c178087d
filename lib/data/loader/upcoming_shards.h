// Prefetch for a streamed set: announces which shards a rank needs next while its batches are
// planned.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "lib/data/order/batch_job.h"
#include "lib/data/order/streamed_order.h"
#include "lib/data/set/dataset.h"

namespace scaletrain::data {

class UpcomingShards {
 public:
  UpcomingShards(std::shared_ptr<const Dataset> dataset, std::shared_ptr<const StreamedOrder> order,
                 ReaderSlice slice)
      : dataset_(std::move(dataset)), order_(std::move(order)), slice_(slice) {}

  // Reports that batch `number`, described by `job`, is planned. One caller at a time.
  void plan(std::int64_t number, const BatchJob& job);

 private:
  std::shared_ptr<const Dataset> dataset_;
  std::shared_ptr<const StreamedOrder> order_;
  ReaderSlice slice_;
  std::int64_t last_ = -2;                                  // batch
  std::map<std::int64_t, std::vector<std::int64_t>> next_;  // lane -> its upcoming shards
};

}  // namespace scaletrain::data
