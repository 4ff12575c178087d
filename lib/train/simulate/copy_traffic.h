// What ranks that have the same elements give to each other in a step, to add up their gradients.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/dist/fake/network.h"
#include "lib/parallel/compress/bucket.h"
#include "lib/recipe/sections/compress.h"

namespace scaletrain::train {

// Gradients that travel together.
struct CopyBucket {
  std::int64_t elements = 0;
  at::ScalarType type = at::kFloat;
  std::vector<parallel::Slot> slots = {};  // without any there is nothing to compress
};

struct CopyTraffic {
  struct Calls {
    dist::FakeKind kind = dist::FakeKind::kAllReduce;
    std::int64_t calls = 0, bytes = 0;
  };
  std::vector<Calls> calls = {};  // of each kind
  std::int64_t unsent_bytes = 0;  // parallel::BucketBytes
};

// Between so many ranks; of compressed gradients in a step behind the warmup.
CopyTraffic copy_traffic(const std::optional<recipe::Compress>& compress,
                         const std::vector<CopyBucket>& buckets, int ranks);

}  // namespace scaletrain::train
