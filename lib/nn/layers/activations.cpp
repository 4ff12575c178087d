#include "lib/nn/layers/activations.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "lib/nn/kernels/activations.h"
#include "lib/nn/kernels/takes.h"
#include "lib/units/parallel.h"

namespace scaletrain::nn {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

using kernels::Bf16;

template <typename Number>
const Number* numbers_of(const Tensor& tensor) {
  return static_cast<const Number*>(tensor.const_data_ptr());
}

template <typename Number>
Number* numbers_into(const Tensor& tensor) {
  return static_cast<Number*>(tensor.mutable_data_ptr());
}

template <typename Number>
using Forward = void (*)(std::int64_t, const Number*, Number*);
template <typename Number>
using Backward = void (*)(std::int64_t, const Number*, const Number*, Number*);

template <typename Number, Forward<Number> kForward, Backward<Number> kBackward>
class Elementwise : public torch::autograd::Function<Elementwise<Number, kForward, kBackward>> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& input) {
    context->save_for_backward({input});
    const Tensor output = at::empty_like(input);
    const auto* const x = numbers_of<Number>(input);
    auto* const y = numbers_into<Number>(output);
    units::parallel_for(
        0, input.numel(), kernels::kGrain,
        [&](std::int64_t begin, std::int64_t end) { kForward(end - begin, x + begin, y + begin); });
    return output;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const Tensor input = context->get_saved_variables()[0];
    const Tensor upper = kernels::laid_out_as(input, gradients[0]);
    const Tensor result = at::empty_like(input);
    const auto* const x = numbers_of<Number>(input);
    const auto* const gradient = numbers_of<Number>(upper);
    auto* const out = numbers_into<Number>(result);
    units::parallel_for(0, input.numel(), kernels::kGrain,
                        [&](std::int64_t begin, std::int64_t end) {
                          kBackward(end - begin, x + begin, gradient + begin, out + begin);
                        });
    return {result};
  }
};

template <typename Number>
class Swiglu : public torch::autograd::Function<Swiglu<Number>> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& gate, const Tensor& up) {
    context->save_for_backward({gate, up});
    const Tensor output = at::empty_like(gate);
    const auto* const gates = numbers_of<Number>(gate);
    const auto* const ups = numbers_of<Number>(up);
    auto* const y = numbers_into<Number>(output);
    units::parallel_for(0, gate.numel(), kernels::kGrain,
                        [&](std::int64_t begin, std::int64_t end) {
                          kernels::swiglu(end - begin, gates + begin, ups + begin, y + begin);
                        });
    return output;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Tensor &gate = saved[0], &up = saved[1];
    const Tensor upper = kernels::laid_out_as(gate, gradients[0]);
    const Tensor of_gate = at::empty_like(gate), of_up = at::empty_like(up);
    const auto* const gates = numbers_of<Number>(gate);
    const auto* const ups = numbers_of<Number>(up);
    const auto* const gradient = numbers_of<Number>(upper);
    auto* const gate_out = numbers_into<Number>(of_gate);
    auto* const up_out = numbers_into<Number>(of_up);
    units::parallel_for(
        0, gate.numel(), kernels::kGrain, [&](std::int64_t begin, std::int64_t end) {
          kernels::swiglu_backward(end - begin, gates + begin, ups + begin, gradient + begin,
                                   gate_out + begin, up_out + begin);
        });
    return {of_gate, of_up};
  }
};

bool takes_floats(const Tensor& tensor) {
  return kernels::takes(tensor) && tensor.is_non_overlapping_and_dense();
}

bool takes_bf16(const Tensor& tensor) {
  return kernels::is_bf16(tensor) && tensor.is_non_overlapping_and_dense();
}

}  // namespace

Tensor gelu(const Tensor& input) {
  if (!takes_floats(input)) return at::gelu(input);
  return Elementwise<float, kernels::gelu, kernels::gelu_backward>::apply(input);
}

Tensor tanh_gelu(const Tensor& input) {
  using Floats = Elementwise<float, kernels::tanh_gelu, kernels::tanh_gelu_backward>;
  using Halves = Elementwise<Bf16, kernels::tanh_gelu, kernels::tanh_gelu_backward>;
  if (takes_floats(input)) return Floats::apply(input);
  return takes_bf16(input) ? Halves::apply(input) : at::gelu(input, "tanh");
}

Tensor swiglu(const Tensor& gate, const Tensor& up) {
  if (gate.strides() == up.strides()) {
    if (takes_floats(gate) && takes_floats(up)) return Swiglu<float>::apply(gate, up);
    if (takes_bf16(gate) && takes_bf16(up)) return Swiglu<Bf16>::apply(gate, up);
  }
  return at::silu(gate) * up;
}

}  // namespace scaletrain::nn
