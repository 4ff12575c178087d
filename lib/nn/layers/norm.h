// Normalisation: LayerNorm over the channels of a token, BatchNorm over the batch.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "lib/nn/layers/layer.h"
#include "lib/units/unit.h"

namespace scaletrain::nn {

// Common parameters of norms: "weight" and "bias" [channels], which start as one and zero.
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
  // Under autocast the output is fp32, as LibTorch's is; but where this device has kernels of our
  // own, and products alone read it, it has the type that these would cast it to.
  enum class ReadBy { kProducts, kSums };
  LayerNorm(std::int64_t channels, double eps, ReadBy read_by = ReadBy::kProducts)
      : Norm(channels), eps_(eps), read_by_(read_by) {}

  // [..., channels] -> the same, or what the exchange makes of it.
  at::Tensor forward(const at::Tensor& input) const;

  // {input + branch, forward(input + branch)}, which a kernel of our own reads and writes at once;
  // without a branch {input, forward(input)}. In a residual block what reads the stream after its
  // norm reads this sum: the stream's gradient is then added where the norm's is computed.
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

  // relu(forward(input) + residual); an undefined residual is none.
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

  // A norm whose weight is frozen stays in evaluation mode: it normalises by its running statistics
  // and leaves them as they are.
  void train(bool on = true) override { Norm::train(on && weight_.requires_grad()); }

  // In training it normalises by the batch, and moves its running statistics unless the unit runs
  // again.
  at::Tensor forward(const at::Tensor& input, const units::Context& context) override;
  at::Tensor forward_relu(const at::Tensor& input, const units::Context& context,
                          const at::Tensor& residual = {}) override;

 protected:
  Options options_;
  at::Tensor mean_, variance_, batches_;

 private:
  // Use the kernels of lib/nn/layers/fused_batch_norm.h, which must take the input.
  bool is_fused(const at::Tensor& input, const at::Tensor& residual) const;
  at::Tensor fused(const at::Tensor& input, const at::Tensor& residual, bool relu,
                   const units::Context& context);
};

}  // namespace scaletrain::nn
