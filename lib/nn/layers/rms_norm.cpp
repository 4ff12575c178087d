#include "lib/nn/layers/rms_norm.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "lib/nn/kernels/rms_norm.h"
#include "lib/nn/kernels/takes.h"
#include "lib/units/parallel.h"

namespace scaletrain::nn {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

std::int64_t grain_rows(std::int64_t columns) {
  return std::max<std::int64_t>(1, kernels::kGrain / columns);
}

// On a CPU in fp32 it uses our own kernel; ATen's RMSNorm consists of five kernels.
class Normalised : public torch::autograd::Function<Normalised> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& input, const Tensor& weight,
                        double eps) {
    const std::int64_t columns = weight.numel(), rows = input.numel() / columns;
    const Tensor output = at::empty_like(input), scales = at::empty({rows}, input.options());
    const auto* const x = input.const_data_ptr<float>();
    const auto* const weights = weight.const_data_ptr<float>();
    auto* const y = output.mutable_data_ptr<float>();
    auto* const scale = scales.mutable_data_ptr<float>();
    units::parallel_for(0, rows, grain_rows(columns), [&](std::int64_t begin, std::int64_t end) {
      kernels::rms_norm({end - begin, columns}, x + begin * columns, weights,
                        static_cast<float>(eps), y + begin * columns, scale + begin);
    });
    context->save_for_backward({input, weight, scales});
    return output;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Tensor &input = saved[0], &weight = saved[1], &scales = saved[2];
    const std::int64_t columns = weight.numel(), rows = input.numel() / columns;
    const Tensor upper = gradients[0].contiguous();
    const Tensor of_input = at::empty_like(input);
    // Always the same blocks of rows, so that the weight's gradient does not depend on the threads.
    const std::int64_t block = grain_rows(columns), blocks = (rows + block - 1) / block;
    const Tensor of_weight = at::zeros({blocks, columns}, weight.options());
    const auto* const x = input.const_data_ptr<float>();
    const auto* const weights = weight.const_data_ptr<float>();
    const auto* const scale = scales.const_data_ptr<float>();
    const auto* const gradient = upper.const_data_ptr<float>();
    auto* const out = of_input.mutable_data_ptr<float>();
    auto* const weight_out = of_weight.mutable_data_ptr<float>();
    units::parallel_for(0, blocks, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        const std::int64_t begin = i * block, count = std::min(block, rows - begin);
        kernels::rms_norm_backward({count, columns}, x + begin * columns, weights, scale + begin,
                                   gradient + begin * columns, out + begin * columns,
                                   weight_out + i * columns);
      }
    });
    return {of_input, of_weight.sum(0), Tensor()};
  }
};

}  // namespace

RmsNorm::RmsNorm(std::int64_t channels, double eps)
    : eps_(eps), weight_(register_parameter("weight", at::empty({channels}))) {}

at::Tensor RmsNorm::normalised(const at::Tensor& input) const {
  if (kernels::is_fp32(input) && kernels::is_fp32(weight_) && input.is_contiguous()) {
    return Normalised::apply(input, weight_, eps_);
  }
  return at::rms_norm(input, weight_.sizes(), weight_, eps_);
}

at::Tensor RmsNorm::forward(const at::Tensor& input) const {
  const at::Tensor output = normalised(input);
  return after_ ? after_(output) : output;
}

void RmsNorm::initialise(const std::string& /*name*/, const at::Tensor& logical,
                         at::Generator /*generator*/) const {
  logical.fill_(1);
}

}  // namespace scaletrain::nn
