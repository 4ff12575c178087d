// A learned factor for each channel of a residual branch.
#pragma once

#include <cstdint>
#include <string>

#include "lib/nn/layers/layer.h"

namespace scaletrain::nn {

// Touvron et al., Going Deeper with Image Transformers, 2021, section 3.1: "gamma" [channels],
// which starts as `start`.
class LayerScale : public Layer {
 public:
  LayerScale(std::int64_t channels, double start);

  // [..., channels] -> the same.
  at::Tensor forward(const at::Tensor& branch) const;
  void initialise(const std::string& name, const at::Tensor& logical,
                  at::Generator generator) const override;

 private:
  double start_;
  at::Tensor gamma_;
};

}  // namespace scaletrain::nn
