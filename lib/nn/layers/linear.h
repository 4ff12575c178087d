// A fully connected layer.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "lib/nn/layers/layer.h"
#include "lib/units/linear_product.h"

namespace scaletrain::nn {

// "weight" [out, in], or [in, out] with `inputs_first` as GPT-2 stores it, and "bias" [out].
class Linear : public Layer {
 public:
  struct Options {
    std::int64_t in = 0, out = 0;
    bool bias = true, inputs_first = false;
  };
  explicit Linear(const Options& options);
  Linear(std::int64_t in, std::int64_t out) : Linear({.in = in, .out = out}) {}

  const Options& options() const { return options_; }  // sizes of the local shard

  // Replaces the matrix product.
  void multiply_by(units::LinearProduct product) { product_ = std::move(product); }

  // [..., in] -> [..., out].
  at::Tensor forward(const at::Tensor& input) const;
  // Returns forward() followed by ReLU.
  at::Tensor forward_relu(const at::Tensor& input) const;

  // Makes the layer column-parallel or, with an all-reduce, row-parallel: then the bias is
  // replicated and added once.
  void cut_by(units::LayerCut cut) override;

  // Uniform initialization by the number of inputs, as PyTorch.
  void initialise(const std::string& name, const at::Tensor& logical,
                  at::Generator generator) const override;

 private:
  at::Tensor outputs_last() const;  // the weight as [out, in]
  at::Tensor summed(const at::Tensor& input) const;

  Options options_;
  at::Tensor weight_, bias_;
  units::LinearProduct product_;  // empty: at::linear
  units::Exchange after_;         // row-parallel layers only
};

}  // namespace scaletrain::nn
