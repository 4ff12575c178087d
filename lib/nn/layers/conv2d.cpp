#include "lib/nn/layers/conv2d.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "lib/nn/layers/initialise.h"
#include "lib/units/flops.h"

namespace scaletrain::nn {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The time of oneDNN's weight-gradient kernel depends on the size of the weight, not of the map. Up
// to this many output positions a matrix product was faster for every convolution of ResNet-18.
constexpr std::int64_t kSmallMap = 16;

// The kernel rows (or columns) that meet the input at all, and the padding that is left for them.
struct Taps {
  std::int64_t first = 0, count = 0, padding = 0;
};

Taps reached_taps(std::int64_t size, const Conv2d::Options& conv) {
  const auto outputs = [&](std::int64_t kernel, std::int64_t padding) {
    return (size + 2 * padding - kernel) / conv.stride + 1;
  };
  const std::int64_t count = outputs(conv.kernel, conv.padding);
  const std::int64_t first = std::max<std::int64_t>(0, conv.padding - (count - 1) * conv.stride);
  const std::int64_t last = std::min(conv.kernel - 1, size - 1 + conv.padding);
  const Taps taps{first, last - first + 1, conv.padding - first};
  // at::conv2d pads both sides equally, so parts that would change the output size are not skipped.
  if (taps.padding >= 0 && outputs(taps.count, taps.padding) == count) return taps;
  return {0, conv.kernel, conv.padding};
}

Tensor reached_part(const Tensor& weight, const Taps& rows, const Taps& columns) {
  return weight.narrow(2, rows.first, rows.count).narrow(3, columns.first, columns.count);
}

// d loss / d kernel as one product: output gradients [out, positions] times the input patches
// [positions, rows * columns * in] that they met.
Tensor kernel_gradient(const Tensor& gradient, const Tensor& input, const Tensor& kernel,
                       std::int64_t stride, at::IntArrayRef padding) {
  const std::int64_t channels = input.size(1), out = gradient.size(1);
  const std::int64_t rows = kernel.size(2), columns = kernel.size(3);
  const Tensor padded = at::constant_pad_nd(input.permute({0, 2, 3, 1}),
                                            {0, 0, padding[1], padding[1], padding[0], padding[0]})
                            .contiguous();
  const std::int64_t positions = gradient.size(0) * gradient.size(2) * gradient.size(3);
  const Tensor patches =
      padded
          .as_strided(
              {gradient.size(0), gradient.size(2), gradient.size(3), rows, columns, channels},
              {padded.stride(0), stride * padded.stride(1), stride * padded.stride(2),
               padded.stride(1), padded.stride(2), 1})
          .reshape({positions, rows * columns * channels});
  const Tensor by_position = gradient.permute({0, 2, 3, 1}).reshape({positions, out});
  return at::mm(by_position.t(), patches)
      .view({out, rows, columns, channels})
      .permute({0, 3, 1, 2});
}

// Outputs of a row (or column) that read the input at one kernel position, and the first input that
// they read.
struct Met {
  std::int64_t first = 0, count = 0, input = 0;
};

Met met_at(std::int64_t place, std::int64_t outputs, std::int64_t inputs, std::int64_t stride,
           std::int64_t padding) {
  // Output o reads input o * stride + place - padding.
  const std::int64_t first = std::max<std::int64_t>(0, (padding - place + stride - 1) / stride);
  const std::int64_t last = inputs - 1 + padding - place;
  const std::int64_t end = last < 0 ? 0 : std::min(outputs, last / stride + 1);
  return {first, std::max<std::int64_t>(0, end - first), first * stride + place - padding};
}

// Depthwise convolution: for each kernel position, the sum of gradient times input over all
// positions, for all channels at once. It is faster only for large kernels.
constexpr std::int64_t kLargeKernel = 5;

Tensor depthwise_gradient(const Tensor& gradient, const Tensor& input, const Tensor& kernel,
                          std::int64_t stride, at::IntArrayRef padding) {
  const Tensor outputs = gradient.permute({0, 2, 3, 1}), inputs = input.permute({0, 2, 3, 1});
  const std::int64_t rows = kernel.size(2), columns = kernel.size(3);
  const Tensor result = at::zeros({rows, columns, input.size(1)}, kernel.options());
  // As a convolution counts them, with positions that meet only padding.
  units::announce_flops({.products = 2.0 * static_cast<double>(gradient.numel() * rows * columns)});
  for (std::int64_t i = 0; i < rows; ++i) {
    const Met y = met_at(i, outputs.size(1), inputs.size(1), stride, padding[0]);
    for (std::int64_t j = 0; j < columns; ++j) {
      const Met x = met_at(j, outputs.size(2), inputs.size(2), stride, padding[1]);
      if (y.count == 0 || x.count == 0) continue;
      const Tensor met = inputs.slice(1, y.input, y.input + (y.count - 1) * stride + 1, stride)
                             .slice(2, x.input, x.input + (x.count - 1) * stride + 1, stride);
      const Tensor part = outputs.narrow(1, y.first, y.count).narrow(2, x.first, x.count);
      result[i][j].copy_((part * met).sum({0, 1, 2}));
    }
  }
  return at::empty_like(kernel).copy_(result.permute({2, 0, 1}).unsqueeze(1));
}

class Convolution : public torch::autograd::Function<Convolution> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& input, const Tensor& weight,
                        const std::optional<Tensor>& bias, const Conv2d::Options& options) {
    const at::ScalarType type = at::autocast::is_autocast_enabled(at::kCPU)
                                    ? at::autocast::get_autocast_dtype(at::kCPU)
                                    : input.scalar_type();
    const Taps rows = reached_taps(input.size(2), options);
    const Taps columns = reached_taps(input.size(3), options);
    const Tensor typed_input = input.to(type).contiguous(at::MemoryFormat::ChannelsLast);
    const Tensor kernel =
        reached_part(weight, rows, columns).to(type).contiguous(at::MemoryFormat::ChannelsLast);
    context->save_for_backward({typed_input, kernel, weight});
    context->saved_data["stride"] = options.stride;
    context->saved_data["first"] = std::vector<std::int64_t>{rows.first, columns.first};
    context->saved_data["padding"] = std::vector<std::int64_t>{rows.padding, columns.padding};
    context->saved_data["input_type"] = input.scalar_type();
    context->saved_data["groups"] = options.groups;
    context->saved_data["has_bias"] = bias.has_value();
    context->saved_data["large_kernel"] = options.kernel >= kLargeKernel;
    return at::conv2d(typed_input, kernel, bias ? bias->to(type) : Tensor(), options.stride,
                      {rows.padding, columns.padding}, 1, options.groups);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &input = saved[0], &kernel = saved[1], &weight = saved[2];
    const std::int64_t stride = context->saved_data["stride"].toInt();
    const auto first = context->saved_data["first"].toIntVector();
    const auto padding = context->saved_data["padding"].toIntVector();
    const Tensor gradient = gradients[0].contiguous(at::MemoryFormat::ChannelsLast);

    const std::int64_t groups = context->saved_data["groups"].toInt();
    const bool depthwise = groups == input.size(1) && groups == weight.size(0) &&
                           context->saved_data["large_kernel"].toBool();
    const bool small =
        (groups == 1 || depthwise) && gradient.size(2) * gradient.size(3) <= kSmallMap;
    Tensor input_gradient, part_gradient, bias_gradient;
    if (context->needs_input_grad(0) || !small) {
      std::tie(input_gradient, part_gradient, std::ignore) = at::convolution_backward(
          gradient, input, kernel, at::nullopt, {stride, stride}, padding, {1, 1}, false, {0, 0},
          groups, {context->needs_input_grad(0), !small, false});
    }
    if (small) {
      part_gradient = groups == 1 ? kernel_gradient(gradient, input, kernel, stride, padding)
                                  : depthwise_gradient(gradient, input, kernel, stride, padding);
    }
    if (input_gradient.defined()) {
      input_gradient = input_gradient.to(context->saved_data["input_type"].toScalarType());
    }

    Tensor weight_gradient;
    if (kernel.sizes() == weight.sizes()) {
      weight_gradient = part_gradient.to(weight.scalar_type());
    } else {  // a tap that meets only padding has the gradient zero
      weight_gradient = at::zeros_like(weight);
      weight_gradient.narrow(2, first[0], kernel.size(2))
          .narrow(3, first[1], kernel.size(3))
          .copy_(part_gradient);
    }
    if (context->saved_data["has_bias"].toBool() && context->needs_input_grad(2)) {
      bias_gradient = gradient.sum({0, 2, 3}, false, weight.scalar_type());
    }
    return {input_gradient, weight_gradient, bias_gradient, Tensor()};
  }
};

}  // namespace

Conv2d::Conv2d(const Options& options) : options_(options) {
  const at::MemoryFormat layout =
      is_plain() ? at::MemoryFormat::Contiguous : at::MemoryFormat::ChannelsLast;
  weight_ = register_parameter("weight", at::empty({options.out, options.in / options.groups,
                                                    options.kernel, options.kernel},
                                                   layout));
  if (options.bias) bias_ = register_parameter("bias", at::empty({options.out}));
}

Tensor Conv2d::forward(const Tensor& input) const {
  if (input.is_cpu() && !is_plain()) {
    const auto bias = options_.bias ? std::make_optional(bias_) : std::nullopt;
    return Convolution::apply(input, weight_, bias, options_);
  }
  return at::conv2d(input, weight_, bias_, options_.stride, options_.padding, 1, options_.groups);
}

void Conv2d::initialise(const std::string& /*name*/, const Tensor& logical,
                        at::Generator generator) const {
  const std::int64_t inputs = options_.in / options_.groups * options_.kernel * options_.kernel;
  initialise_by_inputs(logical, inputs, std::move(generator));
}

}  // namespace scaletrain::nn
