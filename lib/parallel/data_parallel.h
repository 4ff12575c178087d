// Data parallelism: c10d::Reducer, the engine of PyTorch's DistributedDataParallel, sums the
// gradients of all ranks while backward still runs.
//
// The buckets hold the parameters in reverse order, about the order in which backward is done with
// them, cut at kFirstBucketBytes and then kBucketBytes (lib/parallel/layout.h). They are never
// rebuilt: PyTorch's second layout, by the order in which gradients arrived in the first step,
// would change the order of sums after that step, also after a resume; it was not seen to be faster
// for ResNet-18 on two CPU ranks (docs/parallelism.md).
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "lib/dist/group.h"
#include "lib/parallel/layout.h"

namespace scaletrain::parallel {

class DataParallel {
 public:
  // `parameters` are the same on all ranks, in the same order, already broadcast. `saved`: the
  // layout of a checkpoint taken at the same number of ranks, or empty. With one rank nothing is
  // built. Throws core::CheckpointError when `saved` does not name each parameter once.
  DataParallel(std::vector<at::Tensor> parameters, dist::Group& group, const BucketLayout& saved);
  ~DataParallel();

  // Before each micro-step's forward. `synchronize`: this is the last micro-step of its step, the
  // gradients are averaged over the ranks during its backward.
  void begin_micro_step(bool synchronize);
  // Between forward and backward, with what backward starts from.
  void prepare_backward(const at::Tensor& loss);

  // Takes the gradients away before a step's first micro-step, also with one rank: backward writes
  // the next ones, which is cheaper than adding to zeros.
  void zero_grad();

  BucketLayout layout() const;  // as it is now; empty with one rank

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace scaletrain::parallel
