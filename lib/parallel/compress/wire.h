// Collectives for gradients, with a count of the bytes that this rank sends.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <utility>

namespace scaletrain::parallel {

class Wire {
 public:
  using Work = c10::intrusive_ptr<c10d::Work>;

  explicit Wire(c10::intrusive_ptr<c10d::ProcessGroup> group) : group_(std::move(group)) {}

  int rank() const { return group_->getRank(); }
  int ranks() const { return group_->getSize(); }
  std::int64_t bytes() const { return bytes_; }

  // Sums `tensor` over the ranks, in place.
  Work all_reduce(const at::Tensor& tensor);
  // Gathers every rank's `own`, in rank order, into `all`, which has ranks() times its elements.
  Work all_gather(const at::Tensor& all, const at::Tensor& own);

 private:
  c10::intrusive_ptr<c10d::ProcessGroup> group_;
  std::int64_t bytes_ = 0;
};

}  // namespace scaletrain::parallel
