#include "lib/nn/layers/aligned_dense.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>
#include <vector>

namespace scaletrain::nn {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t kMultiple = 64;         // outputs are padded to it
constexpr std::int64_t kRead = 8;              // numbers of 16 bits in 16 bytes
constexpr std::int64_t kFewestOutputs = 1024;  // less is not worth the copies

at::ScalarType type_of(const at::Tensor& weight) {
  const at::DeviceType device = weight.device().type();
  return at::autocast::is_autocast_enabled(device) ? at::autocast::get_autocast_dtype(device)
                                                   : weight.scalar_type();
}

std::int64_t padding(std::int64_t outputs) { return (kMultiple - outputs % kMultiple) % kMultiple; }

// Returns `gradient` [..., outputs] padded with zeros to a multiple. In place if its rows already
// have that stride and the padding is unused, as with the fused loss.
Tensor widened_gradient(const Tensor& gradient) {
  const std::int64_t outputs = gradient.size(-1), more = padding(outputs), wide = outputs + more;
  const std::int64_t rows = gradient.numel() / outputs;
  std::vector<std::int64_t> sizes = gradient.sizes().vec();
  sizes.back() = wide;
  const auto bytes = static_cast<std::size_t>(rows * wide) * gradient.element_size();
  const bool has_room = gradient.storage().nbytes() == bytes && gradient.storage_offset() == 0 &&
                        gradient.strides().equals(at::empty(sizes, at::kMeta).strides());
  if (!has_room) return at::constant_pad_nd(gradient, {0, more});
  const Tensor whole = gradient.as_strided(sizes, gradient.strides());
  whole.narrow(-1, outputs, more).zero_();
  return whole;
}

// Input, weight and bias in one type.
class AlignedDense : public torch::autograd::Function<AlignedDense> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& input, const Tensor& weight,
                        const std::optional<Tensor>& bias) {
    const std::int64_t outputs = weight.size(0), more = padding(outputs);
    const Tensor wide = at::constant_pad_nd(weight, {0, 0, 0, more});
    std::optional<Tensor> wide_bias;
    if (bias) wide_bias = at::constant_pad_nd(*bias, {0, more});
    context->save_for_backward({input, wide});
    context->saved_data["outputs"] = outputs;
    context->saved_data["bias"] = bias.has_value();
    return at::linear(input, wide, wide_bias).narrow(-1, 0, outputs);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const std::int64_t outputs = context->saved_data["outputs"].toInt();
    const Tensor wide = widened_gradient(gradients[0]);
    const Tensor rows = wide.reshape({-1, wide.size(-1)});
    variable_list result(3);
    if (context->needs_input_grad(0)) result[0] = wide.matmul(saved[1]);
    if (context->needs_input_grad(1)) {
      const Tensor inputs = saved[0].reshape({-1, saved[0].size(-1)});
      result[1] = rows.t().mm(inputs).narrow(0, 0, outputs);
    }
    if (context->saved_data["bias"].toBool() && context->needs_input_grad(2)) {
      result[2] = rows.sum(0).narrow(0, 0, outputs);
    }
    return result;
  }
};

}  // namespace

bool aligned_dense_takes(const at::Tensor& input, const at::Tensor& weight) {
  return input.is_cuda() && weight.size(0) % kRead != 0 && weight.size(0) >= kFewestOutputs &&
         at::isReducedFloatingType(type_of(weight));
}

at::Tensor aligned_dense(const at::Tensor& input, const at::Tensor& weight,
                         const at::Tensor& bias) {
  const at::ScalarType type = type_of(weight);
  const std::optional<at::Tensor> added =
      bias.defined() ? std::optional(bias.to(type)) : std::nullopt;
  return AlignedDense::apply(input.to(type), weight.to(type), added);
}

}  // namespace scaletrain::nn
