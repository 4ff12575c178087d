// Builds the data order that a set and a recipe ask for.
#pragma once

#include <cstdint>
#include <memory>

#include "lib/core/plan/step_plan.h"
#include "lib/data/order/order.h"
#include "lib/data/set/dataset.h"

namespace scaletrain::data {

struct OrderOptions {
  std::uint64_t seed = 0;
  std::int64_t shuffle_shards = 0;  // shards in a group within which samples are permuted; 0: all
  std::int64_t samples_per_epoch = 0;  // 0: size of the set
  std::int64_t repeats = 1;            // copies of a sample in a global batch; indexed order only
  bool streamed = false;
  std::int64_t lanes = 64;        // streamed order: shards read side by side
  std::int64_t block = 1;         // streamed order: samples of a micro-batch
  std::int64_t global_batch = 1;  // samples; epochs of a streamed order are multiples of it
  std::shared_ptr<const core::StepPlan> growing = nullptr;  // step plan of a growing batch
};

// Returns a streamed order or an indexed one. Several parts of the set are mixed by weight; a
// balanced part draws its classes equally often. A streamed order keeps the set, to look up shard
// sizes.
std::shared_ptr<const Order> make_order(const std::shared_ptr<const Dataset>& dataset,
                                        const OrderOptions& options);

}  // namespace scaletrain::data
