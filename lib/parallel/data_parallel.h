// Data parallelism: c10d::Reducer, the engine of PyTorch's DistributedDataParallel, sums the
// gradients of all ranks while backward still runs.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/dist/group.h"

namespace scaletrain::parallel {

// Parameter numbers of each bucket. From 3 ranks on it decides the order of sums, so a bit-exact
// resume builds the Reducer with the layout of the run it continues.
using BucketLayout = std::vector<std::vector<std::int64_t>>;

class DataParallel {
 public:
  // `parameters` are the same on all ranks, in the same order, already broadcast. `saved`: the layout
  // of a checkpoint taken at the same number of ranks, or empty. With one rank nothing is built.
  DataParallel(std::vector<at::Tensor> parameters, dist::Group& group, const BucketLayout& saved);
  ~DataParallel();

  // Before each micro-step's forward. `synchronize`: this is the last micro-step of its step, the
  // gradients are averaged over the ranks during its backward.
  void begin_micro_step(bool synchronize);
  // Between forward and backward, with what backward starts from.
  void prepare_backward(const at::Tensor& loss);

  // Sets gradients to zero in place (they are views of the buckets); before a step's first
  // micro-step.
  void zero_grad();

  BucketLayout layout() const;  // as it is now; empty with one rank

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace scaletrain::parallel
