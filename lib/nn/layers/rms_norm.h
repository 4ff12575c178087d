// RMSNorm.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "lib/nn/layers/layer.h"

namespace scaletrain::nn {

// x / sqrt(mean(x^2) + eps) * weight over the channels (Zhang and Sennrich, Root Mean Square Layer
// Normalization, 2019, equation 4); "weight" [channels] is initialized to one.
class RmsNorm : public Layer {
 public:
  RmsNorm(std::int64_t channels, double eps);

  // [..., channels] -> the same shape, or the result of the layer's collective.
  at::Tensor forward(const at::Tensor& input) const;
  void cut_by(units::LayerCut cut) override { after_ = std::move(cut.after); }

  void initialise(const std::string& name, const at::Tensor& logical,
                  at::Generator generator) const override;

 private:
  at::Tensor normalised(const at::Tensor& input) const;

  double eps_;
  at::Tensor weight_;
  units::Exchange after_;
};

}  // namespace scaletrain::nn
