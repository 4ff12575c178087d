// Which gradients travel together.
#pragma once

#include <cstddef>

#include "lib/parallel/data_parallel.h"

namespace scaletrain::parallel {

// PyTorch's sizes: a small first bucket starts the exchange early, large ones use the network well.
inline constexpr std::size_t kFirstBucketBytes = std::size_t{1} << 20;
inline constexpr std::size_t kBucketBytes = std::size_t{25} << 20;

// Throws core::CheckpointError unless `layout` names each of `parameters` parameters exactly once.
void check_layout(const BucketLayout& layout, std::size_t parameters);

}  // namespace scaletrain::parallel
