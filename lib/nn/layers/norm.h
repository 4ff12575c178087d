// Normalisation: LayerNorm over the channels of a token, BatchNorm over the batch.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "lib/nn/layers/layer.h"
#include "lib/units/unit.h"

namespace scaletrain::nn {

// Common parameters of norms: "weight" and "bias" [channels], initialized to one and zero.
class Norm : public Layer {
 public:
  explicit Norm(std::int64_t channels);
  void initialise(const std::string& name, const at::Tensor& logical,
                  at::Generator generator) const override;

 protected:
  at::Tensor weight_, bias_;
};

// Ba, Kiros and Hinton, Layer Normalization, 2016.
class LayerNorm : public Norm {
 public:
  // Under autocast the output is fp32, as LibTorch's; if lib/cuda has kernels for the device and
  // only matrix products read the output, it has their dtype instead.
  enum class ReadBy { kProducts, kSums };
  LayerNorm(std::int64_t channels, double eps, ReadBy read_by = ReadBy::kProducts)
      : Norm(channels), eps_(eps), read_by_(read_by) {}

  // [..., channels] -> the same shape, or the result of the layer's collective.
  at::Tensor forward(const at::Tensor& input) const;

  // Returns {input + branch, forward(input + branch)} from one fused kernel; without a branch
  // {input, forward(input)}. In a residual block, code after the norm continues with this sum, so
  // that the stream's gradient is added in the norm's backward kernel.
  struct Sum {
    at::Tensor sum, output;
  };
  Sum forward_sum(const at::Tensor& input, const at::Tensor& branch = {}) const;

  void cut_by(units::LayerCut cut) override { after_ = std::move(cut.after); }

 private:
  at::ScalarType output_type(const at::Tensor& input) const;

  double eps_;
  ReadBy read_by_;
  units::Exchange after_;
};

// Normalises feature maps [batch, channels, height, width] -> the same shape.
class ImageNorm : public Norm {
 public:
  using Norm::Norm;
  virtual at::Tensor forward(const at::Tensor& input, const units::Context& context) = 0;

  // Returns relu(forward(input) + residual); `residual` may be undefined.
  virtual at::Tensor forward_relu(const at::Tensor& input, const units::Context& context,
                                  const at::Tensor& residual = {});
};

// Ioffe and Szegedy, Batch Normalization, 2015; PyTorch's BatchNorm2d with its defaults, and its
// buffers "running_mean", "running_var" and "num_batches_tracked".
class BatchNorm : public ImageNorm {
 public:
  struct Options {
    double eps = 1e-5, momentum = 0.1;
  };
  explicit BatchNorm(std::int64_t channels) : BatchNorm(channels, Options{}) {}
  BatchNorm(std::int64_t channels, const Options& options);

  // A norm with a frozen weight stays in evaluation mode: it uses its running statistics and does
  // not change them.
  void train(bool on = true) override { Norm::train(on && weight_.requires_grad()); }

  // In training it normalizes by the batch statistics and updates the running statistics, unless a
  // unit is being recomputed.
  at::Tensor forward(const at::Tensor& input, const units::Context& context) override;
  at::Tensor forward_relu(const at::Tensor& input, const units::Context& context,
                          const at::Tensor& residual = {}) override;

 protected:
  Options options_;
  at::Tensor mean_, variance_, batches_;

 private:
  // True if the kernels of lib/nn/layers/fused_batch_norm.h are used for this input.
  bool is_fused(const at::Tensor& input, const at::Tensor& residual) const;
  at::Tensor fused(const at::Tensor& input, const at::Tensor& residual, bool relu,
                   const units::Context& context);
};

}  // namespace scaletrain::nn
