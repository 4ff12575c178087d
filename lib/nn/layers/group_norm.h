// GroupNorm of feature maps, which is independent of other samples.
#pragma once

#include <cstdint>

#include "lib/nn/layers/norm.h"

namespace scaletrain::nn {

// Wu and He, Group Normalization, 2018: 32 groups of channels, or the largest smaller number that
// divides the channels (for MobileNet).
class GroupNorm : public ImageNorm {
 public:
  GroupNorm(std::int64_t channels, double eps);
  at::Tensor forward(const at::Tensor& input, const units::Context& context) override;

 private:
  std::int64_t groups_;
  double eps_;
};

}  // namespace scaletrain::nn
