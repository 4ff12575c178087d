// The order that a set and a recipe ask for.
#pragma once

#include <cstdint>
#include <memory>

#include "lib/core/step_plan.h"
#include "lib/data/order/order.h"
#include "lib/data/set/dataset.h"

namespace scaletrain::data {

struct OrderOptions {
  std::uint64_t seed = 0;
  std::int64_t shuffle_shards = 0;     // samples are permuted within groups of so many; 0: over all
  std::int64_t samples_per_epoch = 0;  // 0: as many as the set has
  std::int64_t repeats = 1;            // of a sample in a global batch; not of the streamed order
  bool streamed = false;
  std::int64_t lanes = 64;        // of the streamed order,
  std::int64_t block = 1;         // whose blocks are micro-batches,
  std::int64_t global_batch = 1;  // and whose epochs are whole global batches, or parts of them
  std::shared_ptr<const core::StepPlan> growing = nullptr;  // where these are not all alike
};

// Indexed or streamed, or balanced, as each of the set's parts asks for; mixed where there are
// several. A streamed order keeps the set for the shards' sizes.
std::shared_ptr<const Order> make_order(const std::shared_ptr<const Dataset>& dataset,
                                        const OrderOptions& options);

}  // namespace scaletrain::data
