// Gradient all-reduce traffic of a step between ranks that have the same elements.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/parallel/compress/bucket.h"
#include "lib/recipe/sections/parallel/compress.h"

namespace scaletrain::train {

// Gradients that are communicated together.
struct CopyBucket {
  std::int64_t elements = 0;
  at::ScalarType type = at::kFloat;
  std::vector<parallel::Slot> slots = {};  // empty without compression
};

// Bytes of all buckets; with gradient compression, of a step after its warmup.
parallel::BucketBytes copy_traffic(const std::optional<recipe::Compress>& compress,
                                   const std::vector<CopyBucket>& buckets);

}  // namespace scaletrain::train
