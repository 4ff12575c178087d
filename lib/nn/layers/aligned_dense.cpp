#include "lib/nn/layers/aligned_dense.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>

namespace scaletrain::nn {
namespace {

constexpr std::int64_t kMultiple = 64;         // of the widened outputs
constexpr std::int64_t kRead = 8;              // numbers of 16 bits in 16 bytes
constexpr std::int64_t kFewestOutputs = 1024;  // less is not worth the copies

at::ScalarType type_of(const at::Tensor& weight) {
  const at::DeviceType device = weight.device().type();
  return at::autocast::is_autocast_enabled(device) ? at::autocast::get_autocast_dtype(device)
                                                   : weight.scalar_type();
}

}  // namespace

bool aligned_dense_takes(const at::Tensor& input, const at::Tensor& weight) {
  return input.is_cuda() && weight.size(0) % kRead != 0 && weight.size(0) >= kFewestOutputs &&
         at::isReducedFloatingType(type_of(weight));
}

at::Tensor aligned_dense(const at::Tensor& input, const at::Tensor& weight,
                         const at::Tensor& bias) {
  const std::int64_t outputs = weight.size(0), more = (kMultiple - outputs % kMultiple) % kMultiple;
  const at::ScalarType type = type_of(weight);
  const at::Tensor wide = at::constant_pad_nd(weight.to(type), {0, 0, 0, more});
  at::Tensor wide_bias;
  if (bias.defined()) wide_bias = at::constant_pad_nd(bias.to(type), {0, more});
  return at::linear(input.to(type), wide, wide_bias).narrow(-1, 0, outputs);
}

}  // namespace scaletrain::nn
