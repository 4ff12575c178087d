#include "lib/nn/layers/group_norm.h"

#include <ATen/ATen.h>

#include <numeric>

namespace scaletrain::nn {
namespace {

constexpr std::int64_t kMostGroups = 32;

}  // namespace

GroupNorm::GroupNorm(std::int64_t channels, double eps)
    : ImageNorm(channels), groups_(std::gcd(channels, kMostGroups)), eps_(eps) {}

at::Tensor GroupNorm::forward(const at::Tensor& input, const units::Context& /*context*/) {
  return at::group_norm(input, groups_, weight_, bias_, eps_,
                        at::globalContext().userEnabledCuDNN());
}

}  // namespace scaletrain::nn
