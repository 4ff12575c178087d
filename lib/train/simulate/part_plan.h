// Predicts a rank's local shards of a sharded model and their communication in a step: the
// arithmetic of lib/parallel/sharded.h.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "lib/core/plan/gradient_memory.h"
#include "lib/parallel/placement.h"
#include "lib/train/simulate/copy_traffic.h"
#include "lib/units/named_parameter.h"

namespace scaletrain::train {

// Position of a rank in the sharding group and in the pipeline.
struct PartOf {
  int ranks = 1, place = 0;  // size of the sharding group; this rank's position in it
  // By stage, the first unit and the one after the last; a single stage without a pipeline.
  std::vector<std::pair<std::size_t, std::size_t>> stages = {};
  bool is_of_pipeline = false;
  std::int64_t micros = 1;  // micro-batches of a step
};

// Calls and bytes of a step, as they are given to exchanges.
struct PartTraffic {
  std::int64_t calls = 0, bytes = 0;
};

struct PartPlan {
  std::vector<units::NamedParameter> owned;  // parameters it updates, without memory
  std::int64_t bytes = 0;                    // bytes of this rank's shards of all blocks
  std::int64_t together = 0;                 // peak bytes of unsharded blocks
  PartTraffic gathers, scatters;             // parameters; gradients
  core::GradientPeak gradients;              // includes blocks that are being filled or reduced
  std::vector<CopyBucket> copies;            // all-reduces with ranks that have the same shards
};

// Plans the shards of `parameters`, which the rank's units use, including frozen ones at
// ShardLevel::kParameters; `sharding` has level, types and all units of the model.
PartPlan plan_parts(const std::vector<units::NamedParameter>& parameters,
                    const parallel::ShardingOptions& sharding, const PartOf& of);

// Returns `parameter` with this number of elements and without memory.
units::NamedParameter without_memory(const units::NamedParameter& parameter, at::IntArrayRef shape);

}  // namespace scaletrain::train
