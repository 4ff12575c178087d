// Gradient buckets: parameters whose gradients are communicated together.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace scaletrain::parallel {

// PyTorch's sizes: a small first bucket starts early, large ones use the network well. The last
// bucket is small again, as no computation overlaps with it.
inline constexpr std::size_t kFirstBucketBytes = std::size_t{1} << 20;
inline constexpr std::size_t kBucketBytes = std::size_t{25} << 20;
inline constexpr std::size_t kLastBucketBytes = std::size_t{4} << 20;

// Parameter numbers of each bucket; buckets are communicated in this order. With 3 or more ranks
// the layout decides the order of sums, so a bit-exact resume builds the Reducer with the layout of
// the run that it continues.
using BucketLayout = std::vector<std::vector<std::int64_t>>;

// Makes the layout of a fresh run.
BucketLayout make_layout(const std::vector<at::Tensor>& parameters);

// Throws core::CheckpointError unless `layout` names each of `parameters` parameters exactly once.
void check_layout(const BucketLayout& layout, std::size_t parameters);

}  // namespace scaletrain::parallel
