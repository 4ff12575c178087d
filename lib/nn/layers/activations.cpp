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

using Forward = void (*)(std::int64_t, const float*, float*);
using Backward = void (*)(std::int64_t, const float*, const float*, float*);

template <Forward kForward, Backward kBackward>
class Elementwise : public torch::autograd::Function<Elementwise<kForward, kBackward>> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& input) {
    context->save_for_backward({input});
    const Tensor output = at::empty_like(input);
    const auto* const x = input.const_data_ptr<float>();
    auto* const y = output.mutable_data_ptr<float>();
    units::parallel_for(
        0, input.numel(), kernels::kGrain,
        [&](std::int64_t begin, std::int64_t end) { kForward(end - begin, x + begin, y + begin); });
    return output;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const Tensor input = context->get_saved_variables()[0];
    const Tensor upper = kernels::laid_out_as(input, gradients[0]);
    const Tensor result = at::empty_like(input);
    const auto* const x = input.const_data_ptr<float>();
    const auto* const gradient = upper.const_data_ptr<float>();
    auto* const out = result.mutable_data_ptr<float>();
    units::parallel_for(0, input.numel(), kernels::kGrain,
                        [&](std::int64_t begin, std::int64_t end) {
                          kBackward(end - begin, x + begin, gradient + begin, out + begin);
                        });
    return {result};
  }
};

class Swiglu : public torch::autograd::Function<Swiglu> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& gate, const Tensor& up) {
    context->save_for_backward({gate, up});
    const Tensor output = at::empty_like(gate);
    const auto* const gates = gate.const_data_ptr<float>();
    const auto* const ups = up.const_data_ptr<float>();
    auto* const y = output.mutable_data_ptr<float>();
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
    const auto* const gates = gate.const_data_ptr<float>();
    const auto* const ups = up.const_data_ptr<float>();
    const auto* const gradient = upper.const_data_ptr<float>();
    auto* const gate_out = of_gate.mutable_data_ptr<float>();
    auto* const up_out = of_up.mutable_data_ptr<float>();
    units::parallel_for(
        0, gate.numel(), kernels::kGrain, [&](std::int64_t begin, std::int64_t end) {
          kernels::swiglu_backward(end - begin, gates + begin, ups + begin, gradient + begin,
                                   gate_out + begin, up_out + begin);
        });
    return {of_gate, of_up};
  }
};

bool takes(const Tensor& tensor) {
  return kernels::takes(tensor) && tensor.is_non_overlapping_and_dense();
}

}  // namespace

Tensor gelu(const Tensor& input) {
  if (!takes(input)) return at::gelu(input);
  return Elementwise<kernels::gelu, kernels::gelu_backward>::apply(input);
}

Tensor tanh_gelu(const Tensor& input) {
  if (!takes(input)) return at::gelu(input, "tanh");
  return Elementwise<kernels::tanh_gelu, kernels::tanh_gelu_backward>::apply(input);
}

Tensor swiglu(const Tensor& gate, const Tensor& up) {
  if (!takes(gate) || !takes(up) || gate.strides() != up.strides()) return at::silu(gate) * up;
  return Swiglu::apply(gate, up);
}

}  // namespace scaletrain::nn
