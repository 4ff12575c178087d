#include "lib/precision/float8.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_scaled_mm.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/mm.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/custom_function.h>

#include <vector>

namespace scaletrain::precision {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr double kLargestE4m3 = 448, kLargestE5m2 = 57344;
constexpr double kLeastMagnitude = 1e-12;  // lower bound of the magnitude, for a tensor of zeros
constexpr std::int64_t kMultiple = 16;     // the summed dimension must be a multiple of it

// Returns the matrix [rows, columns] padded with zeros, which do not change sums.
at::Tensor padded(const at::Tensor& matrix) {
  const std::int64_t missing = (kMultiple - matrix.size(1) % kMultiple) % kMultiple;
  return missing == 0 ? matrix : at::constant_pad_nd(matrix, {0, missing});
}

// Returns a [m, k] times the transpose of b [n, k]: [m, n].
at::Tensor product(const at::Tensor& a, at::ScalarType a_format, const at::Tensor& b,
                   const Float8& how, bool fast) {
  if (how.simulated) {
    const Quantised left = quantise(a, a_format, how.scaling);
    const Quantised right = quantise(b, at::kFloat8_e4m3fn, how.scaling);
    const at::Tensor sums = at::mm(left.values.to(at::kFloat), right.values.to(at::kFloat).t());
    return sums.mul_(left.scales).mul_(right.scales.t()).to(how.result);
  }
  const Quantised left = quantise(padded(a), a_format, how.scaling);
  const Quantised right = quantise(padded(b), at::kFloat8_e4m3fn, how.scaling);
  return at::_scaled_mm(left.values, right.values.t(), left.scales, right.scales.t(), {}, {},
                        how.result, fast);
}

class Float8Linear : public torch::autograd::Function<Float8Linear> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input,
                            const at::Tensor& weight, const Float8& how) {
    // Autocast would convert the simulated fp32 sums to bf16.
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
    context->save_for_backward({input, weight});
    context->saved_data["rowwise"] = how.scaling == Scaling::kRowwise;
    context->saved_data["result"] = static_cast<std::int64_t>(how.result);
    context->saved_data["simulated"] = how.simulated;
    const at::Tensor rows = input.reshape({-1, input.size(-1)});
    std::vector<std::int64_t> shape = input.sizes().vec();
    shape.back() = weight.size(0);
    return product(rows, at::kFloat8_e4m3fn, weight, how, /*fast=*/true).view(shape);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
    const Float8 how{.scaling = context->saved_data["rowwise"].toBool() ? Scaling::kRowwise
                                                                        : Scaling::kTensorwise,
                     .result = static_cast<at::ScalarType>(context->saved_data["result"].toInt()),
                     .simulated = context->saved_data["simulated"].toBool()};
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &input = saved[0], &weight = saved[1];
    const at::Tensor upper = gradients[0].reshape({-1, weight.size(0)});
    at::Tensor of_input, of_weight;
    if (context->needs_input_grad(0)) {
      of_input =
          product(upper, at::kFloat8_e5m2, weight.t(), how, /*fast=*/false).view(input.sizes());
    }
    if (context->needs_input_grad(1)) {
      const at::Tensor rows = input.reshape({-1, input.size(-1)});
      of_weight = product(upper.t(), at::kFloat8_e5m2, rows.t(), how, /*fast=*/false);
    }
    return {of_input, of_weight, at::Tensor()};
  }
};

}  // namespace

Quantised quantise(const at::Tensor& matrix, at::ScalarType format, Scaling scaling) {
  const double largest = format == at::kFloat8_e4m3fn ? kLargestE4m3 : kLargestE5m2;
  const at::Tensor sizes = at::abs(matrix);
  const at::Tensor magnitude =
      scaling == Scaling::kRowwise ? at::amax(sizes, {1}, /*keepdim=*/true) : at::amax(sizes);
  const at::Tensor factor =
      (largest / magnitude.to(at::kDouble).clamp_min(kLeastMagnitude)).to(at::kFloat);
  const at::Tensor scaled = matrix.to(at::kFloat).mul(factor).clamp_(-largest, largest);
  return {.values = scaled.to(format).contiguous(), .scales = factor.reciprocal()};
}

at::Tensor float8_linear(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                         const Float8& how) {
  const at::Tensor rows = input.to(how.result), factors = weight.to(how.result);
  // An expert may have no rows, and then no largest magnitude.
  const at::Tensor output =
      rows.numel() > 0 ? Float8Linear::apply(rows, factors, how) : at::linear(rows, factors);
  return bias.defined() ? output + bias.to(how.result) : output;
}

}  // namespace scaletrain::precision
