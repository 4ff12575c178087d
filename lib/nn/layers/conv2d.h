// A 2-d convolution that stays fast on small feature maps on a CPU.
#pragma once

#include <cstdint>
#include <string>

#include "lib/nn/layers/layer.h"

namespace scaletrain::nn {

// A square convolution: "weight" [out, in / groups, kernel, kernel], and "bias" [out] where it has
// one.
//
// Without a bias or with groups the weight is stored channels last, and on a CPU two things differ
// from at::conv2d, with equal results and gradients up to rounding. Kernel rows and columns that
// only meet padding are skipped (a 3x3 kernel on a 1x1 map is a 1x1 kernel). For small maps the
// weight's gradient is one matrix product; for large depthwise kernels it is one product for each
// kernel position. ResNet-18 at 32x32 in bf16 trains 2.7 times as fast. Not differentiable twice.
class Conv2d : public Layer {
 public:
  struct Options {
    std::int64_t in = 0, out = 0, kernel = 1, stride = 1, padding = 0;
    bool bias = false;
    std::int64_t groups = 1;
  };
  explicit Conv2d(const Options& options);

  // [batch, in, height, width] -> [batch, out, height', width']; computes in
  // autocast's type where autocast is on.
  at::Tensor forward(const at::Tensor& input) const;

  // Uniform initialization by the number of inputs, as PyTorch.
  void initialise(const std::string& name, const at::Tensor& logical,
                  at::Generator generator) const override;

 private:
  bool is_plain() const { return options_.bias && options_.groups == 1; }

  Options options_;
  at::Tensor weight_, bias_;
};

}  // namespace scaletrain::nn
