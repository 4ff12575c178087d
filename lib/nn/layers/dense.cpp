#include "lib/nn/layers/dense.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "lib/nn/kernels/takes.h"
#include "lib/nn/layers/aligned_dense.h"
#include "lib/nn/layers/small_dense.h"

namespace scaletrain::nn {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// A call of oneDNN takes some 10 us more than one of MKL.
constexpr std::int64_t kFewestProducts = 1 << 21;
constexpr std::int64_t kFewestRows = 8;

// Returns a [m, k] times b^T, b [n, k] (+ bias), of any strides, by oneDNN, which ATen exposes only
// under this name.
Tensor product(const Tensor& a, const Tensor& b, const std::optional<Tensor>& bias = {}) {
  using Linear =
      Tensor(const Tensor&, const Tensor&, const std::optional<Tensor>&, c10::string_view,
             c10::List<std::optional<at::Scalar>>, std::optional<c10::string_view>);
  static const auto kLinear = c10::Dispatcher::singleton()
                                  .findSchemaOrThrow("mkldnn::_linear_pointwise", "")
                                  .typed<Linear>();
  return kLinear.call(a, b, bias, "none", c10::List<std::optional<at::Scalar>>(), std::nullopt);
}

class Dense : public torch::autograd::Function<Dense> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& rows, const Tensor& weight,
                        const std::optional<Tensor>& bias) {
    context->save_for_backward({rows, weight});
    context->saved_data["bias"] = bias.has_value();
    return product(rows, weight, bias);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Tensor gradient = gradients[0].contiguous();
    variable_list result(3);
    if (context->needs_input_grad(0)) result[0] = product(gradient, saved[1].t());
    if (context->needs_input_grad(1)) result[1] = product(gradient.t(), saved[0].t());
    if (context->saved_data["bias"].toBool() && context->needs_input_grad(2)) {
      result[2] = gradient.sum(0);
    }
    return result;
  }
};

// True if the product is large enough for a call of oneDNN.
bool is_large(const Tensor& input, const Tensor& weight) {
  const std::int64_t rows = input.numel() / std::max<std::int64_t>(input.size(-1), 1);
  return kernels::takes(input) && kernels::takes(weight) && rows >= kFewestRows &&
         rows * weight.numel() >= kFewestProducts;
}

Tensor large_dense(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  std::vector<std::int64_t> sizes = input.sizes().vec();
  sizes.back() = weight.size(0);
  const std::optional<Tensor> added = bias.defined() ? std::optional(bias) : std::nullopt;
  return Dense::apply(input.reshape({-1, input.size(-1)}), weight, added).view(sizes);
}

}  // namespace

Tensor dense(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  if (is_large(input, weight)) return large_dense(input, weight, bias);
  if (aligned_dense_takes(input, weight)) return aligned_dense(input, weight, bias);
  if (small_dense_takes(input, weight, bias)) return small_dense(input, weight, bias, false);
  return at::linear(input, weight, bias);
}

Tensor dense_relu(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  if (!is_large(input, weight) && small_dense_takes(input, weight, bias)) {
    return small_dense(input, weight, bias, true);
  }
  return dense(input, weight, bias).relu_();
}

}  // namespace scaletrain::nn
