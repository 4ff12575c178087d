// Squeeze-and-excitation: scales channels by factors computed from the complete map.
#pragma once

#include <cstdint>
#include <memory>

#include "lib/nn/layers/conv2d.h"

namespace scaletrain::nn {

// Hu et al., Squeeze-and-Excitation Networks, 2017, section 3, with the hard sigmoid of MobileNetV3
// and torchvision's names: "fc1" and "fc2", 1x1 convolutions with a bias.
class SqueezeExcite : public torch::nn::Module {
 public:
  SqueezeExcite(std::int64_t channels, std::int64_t squeezed);

  // [batch, channels, height, width] -> the same.
  at::Tensor forward(const at::Tensor& input) const;

 private:
  std::shared_ptr<Conv2d> fc1_, fc2_;
};

}  // namespace scaletrain::nn
