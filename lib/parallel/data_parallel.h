// Data parallelism: every rank holds all of the model. c10d::Reducer, the engine of PyTorch's
// DistributedDataParallel, sums the gradients of the ranks that train on different samples or on
// different tokens of the same ones, those of the mesh's gradients(), while backward still runs;
// where replicas exchange weights now and then, of the ranks that share a replica's samples. Where
// the recipe compresses them, each bucket goes through lib/parallel/compress/ instead.
//
// The buckets hold the parameters in reverse order, about the order in which backward is done with
// them, of the sizes that lib/parallel/layout.h says. They are never rebuilt: PyTorch's second
// layout, by the order in which gradients arrived in the first step, would change the order of sums
// after that step, also after a resume; it was not seen to be faster for ResNet-18 on two CPU ranks
// (docs/lab/parallelism.md).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/parallel/placement.h"

namespace scaletrain::parallel {

class DataParallel : public Placement {
 public:
  DataParallel(std::vector<units::NamedParameter> parameters, const dist::Mesh& mesh,
               GradientExchange exchange = {});
  ~DataParallel() override;

  const std::vector<units::NamedParameter>& owned() const override;
  // Where no rank has other gradients to add nothing is built.
  void start(const BucketLayout& saved) override;
  // Also with one rank: backward writes the next gradients, which is cheaper than adding to zeros.
  void zero_grad() override;
  void begin_step(std::int64_t step) override;
  void begin_micro_step(bool synchronize) override;
  void prepare_backward(const at::Tensor& loss) override;
  void end_step(const at::Tensor& found_inf) override;
  std::int64_t exchanged_bytes() const override;
  std::map<std::string, at::Tensor> own_state() override;
  BucketLayout layout() const override;  // as it is now

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace scaletrain::parallel
