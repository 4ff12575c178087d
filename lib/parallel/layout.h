// Which gradients travel together.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace scaletrain::parallel {

// PyTorch's sizes: a small first bucket starts the exchange early, large ones use the network well.
// And of the last one, which nothing is computed beside.
inline constexpr std::size_t kFirstBucketBytes = std::size_t{1} << 20;
inline constexpr std::size_t kBucketBytes = std::size_t{25} << 20;
inline constexpr std::size_t kLastBucketBytes = std::size_t{4} << 20;

// Parameter numbers of each bucket, the first one to be exchanged first. From 3 ranks on it decides
// the order of sums, so a bit-exact resume builds the Reducer with the layout of the run it
// continues.
using BucketLayout = std::vector<std::vector<std::int64_t>>;

// The layout of a fresh run.
BucketLayout make_layout(const std::vector<at::Tensor>& parameters);

// Throws core::CheckpointError unless `layout` names each of `parameters` parameters exactly once.
void check_layout(const BucketLayout& layout, std::size_t parameters);

}  // namespace scaletrain::parallel
