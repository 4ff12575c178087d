#include "lib/optim/block_codes.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/bucketize.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/full.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace scaletrain::optim {
namespace {

constexpr int kExponents = 7;

std::int64_t block_count(std::int64_t elements, std::int64_t begin) {
  return (begin % kCodeBlock + elements + kCodeBlock - 1) / kCodeBlock;
}

}  // namespace

std::vector<float> code_values(bool has_signs) {
  std::vector<float> values{0, 1};
  for (int exponent = 0; exponent < kExponents; ++exponent) {
    const int parts = 1 << (has_signs ? exponent : exponent + 1);
    for (int part = 0; part < parts; ++part) {
      const double middle = 0.1 + 0.9 * (part + 0.5) / parts;
      const auto value = static_cast<float>(middle * std::pow(10.0, exponent + 1 - kExponents));
      values.push_back(value);
      if (has_signs) values.push_back(-value);
    }
  }
  std::sort(values.begin(), values.end());
  return values;
}

BlockCodes::BlockCodes(bool has_signs, at::Device device)
    : has_signs_(has_signs), values_(at::tensor(code_values(has_signs), at::kFloat).to(device)) {
  const std::int64_t between = values_.numel() - 1;
  bounds_ = (values_.narrow(0, 0, between) + values_.narrow(0, 1, between)) / 2;
}

Coded BlockCodes::zeros(const at::Tensor& like, std::int64_t begin) const {
  constexpr int kZeroWithSigns = 127;  // after the negative values
  const at::TensorOptions options(like.device());
  return {
      .codes = at::full(like.sizes(), has_signs_ ? kZeroWithSigns : 0, options.dtype(at::kByte)),
      .scales = at::zeros({block_count(like.numel(), begin)}, options.dtype(at::kFloat))};
}

at::Tensor BlockCodes::decode(const Coded& coded, std::int64_t begin) const {
  const at::Tensor values = at::index_select(values_, 0, coded.codes.to(at::kInt).view({-1}));
  const at::Tensor scales = coded.scales.unsqueeze(1)
                                .expand({-1, kCodeBlock})
                                .reshape({-1})
                                .narrow(0, begin % kCodeBlock, values.numel());
  return (values * scales).view(coded.codes.sizes());
}

void BlockCodes::encode(const at::Tensor& values, const Coded& coded, std::int64_t begin) const {
  const std::int64_t front = begin % kCodeBlock;
  const std::int64_t back = coded.scales.numel() * kCodeBlock - front - values.numel();
  const std::array<std::int64_t, 2> padding{front, back};
  const at::Tensor blocks =
      at::constant_pad_nd(values.reshape({-1}), padding).view({-1, kCodeBlock});
  coded.scales.copy_(blocks.abs().amax(1));
  const at::Tensor divisors =
      at::where(coded.scales.gt(0), coded.scales, at::ones_like(coded.scales));
  at::Tensor codes = at::bucketize(blocks / divisors.unsqueeze(1), bounds_, /*out_int32=*/true);
  if (!has_signs_) codes = at::where(blocks.gt(0), codes.clamp_min(1), codes);
  coded.codes.copy_(codes.view({-1}).narrow(0, front, values.numel()).view(coded.codes.sizes()));
}

}  // namespace scaletrain::optim
