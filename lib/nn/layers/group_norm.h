// GroupNorm over the maps of an image: it depends on no other sample.
#pragma once

#include <cstdint>

#include "lib/nn/layers/norm.h"

namespace scaletrain::nn {

// Wu and He, Group Normalization, 2018: 32 groups of channels, or as many of them as divide the
// channels (those of a MobileNet).
class GroupNorm : public ImageNorm {
 public:
  GroupNorm(std::int64_t channels, double eps);
  at::Tensor forward(const at::Tensor& input, const units::Context& context) override;

 private:
  std::int64_t groups_;
  double eps_;
};

}  // namespace scaletrain::nn
