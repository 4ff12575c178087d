// Data parallelism (DDP): every rank holds the full model. c10d::Reducer, the engine of PyTorch's
// DistributedDataParallel, all-reduces gradients during backward, over all ranks that train on
// different samples, or on different tokens of the same samples (the mesh's gradients()). With
// local SGD it sums only over the ranks of one replica. With gradient compression each bucket goes
// through lib/parallel/compress/ instead.
//
// Buckets hold the parameters in reverse order, roughly the order in which backward computes
// gradients; lib/parallel/layout.h sets their sizes. They are never rebuilt: PyTorch rebuilds them
// after the first step in the order of arrival, which would change the order of sums after that
// step, also after a resume. Rebuilding showed no gain for ResNet-18 on two CPU ranks
// (docs/lab/parallelism.md).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/parallel/placement.h"

namespace scaletrain::parallel {

class DataParallel : public Placement {
 public:
  DataParallel(std::vector<units::NamedParameter> parameters, const dist::Mesh& mesh,
               GradientExchange exchange = {});
  ~DataParallel() override;

  const std::vector<units::NamedParameter>& owned() const override;
  // Builds no Reducer if the group has one rank.
  void start(const BucketLayout& saved) override;
  // Sets gradients to none, also on one rank: writing is cheaper than adding to zeros. With
  // gradient accumulation begin_micro_step() sets them to zero, as views of the buckets, so that
  // they are in memory once.
  void zero_grad() override;
  void begin_step(std::int64_t step) override;
  void begin_micro_step(bool synchronize) override;
  void prepare_backward(const at::Tensor& loss) override;
  void end_step(const at::Tensor& found_inf) override;
  std::int64_t exchanged_bytes() const override;
  units::Shards state() override;
  BucketLayout layout() const override;  // current layout

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace scaletrain::parallel
