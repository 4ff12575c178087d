#include "lib/units/operation_flops.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <numeric>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace scaletrain::units {
namespace {

using Inputs = c10::ArrayRef<const c10::IValue>;
using Sizes = std::vector<std::int64_t>;

double product(const Sizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), 1.0, [](double all, std::int64_t size) {
    return all * static_cast<double>(size);
  });
}

// Sizes of the tensor at `place`; {} if there is none.
Sizes sizes_at(Inputs inputs, std::size_t place) {
  if (place >= inputs.size() || !inputs[place].isTensor()) return {};
  const at::Tensor tensor = inputs[place].toTensor();
  return tensor.defined() ? tensor.sizes().vec() : Sizes();
}

std::optional<Flops> products(double flops) { return Flops{.products = flops}; }

// a is [..., m, k], b is [..., k, n].
template <std::size_t kFirst>
std::optional<Flops> matrix_product(const at::RecordFunction& function) {
  const Sizes a = sizes_at(function.inputs(), kFirst), b = sizes_at(function.inputs(), kFirst + 1);
  if (a.size() < 2 || b.empty()) return std::nullopt;
  return products(2 * product(a) * static_cast<double>(b.back()));
}

// a is [..., k], b is [n, k].
std::optional<Flops> linear_product(const at::RecordFunction& function) {
  const Sizes a = sizes_at(function.inputs(), 0), b = sizes_at(function.inputs(), 1);
  if (a.empty() || b.size() != 2) return std::nullopt;
  return products(2 * product(a) * static_cast<double>(b.front()));
}

std::int64_t at_place(const Sizes& values, std::size_t place) {
  return values.size() == 1 ? values[0] : values.at(place);
}

// Each output element, or each input element if transposed, is multiplied with the whole kernel.
std::optional<Flops> convolution(const at::RecordFunction& function) {
  constexpr std::size_t kStride = 3, kPadding = 4, kDilation = 5, kTransposed = 6;
  const Inputs inputs = function.inputs();
  const Sizes x = sizes_at(inputs, 0), w = sizes_at(inputs, 1);
  if (x.size() < 3 || w.size() != x.size() || inputs.size() <= kTransposed) return std::nullopt;
  const Sizes stride = inputs[kStride].toIntVector(), padding = inputs[kPadding].toIntVector(),
              dilation = inputs[kDilation].toIntVector();
  double spatial = 1;
  for (std::size_t i = 2; i < x.size(); ++i) {
    std::int64_t size = x[i];
    if (!inputs[kTransposed].toBool()) {
      const std::int64_t kernel = at_place(dilation, i - 2) * (w[i] - 1) + 1;
      size = (x[i] + 2 * at_place(padding, i - 2) - kernel) / at_place(stride, i - 2) + 1;
    }
    spatial *= static_cast<double>(size);
  }
  return products(2 * static_cast<double>(x[0]) * product(w) * spatial);
}

// As many for the gradient of the input as for that of the weight, if it is asked for.
std::optional<Flops> convolution_backward(const at::RecordFunction& function) {
  constexpr std::size_t kTransposed = 7, kMask = 10;
  const Inputs inputs = function.inputs();
  const Sizes upper = sizes_at(inputs, 0), x = sizes_at(inputs, 1), w = sizes_at(inputs, 2);
  if (upper.size() < 3 || x.size() != upper.size() || inputs.size() <= kMask) return std::nullopt;
  const Sizes& places = inputs[kTransposed].toBool() ? x : upper;
  double spatial = 1;
  for (std::size_t i = 2; i < places.size(); ++i) spatial *= static_cast<double>(places[i]);
  const auto mask = inputs[kMask].toBoolList();
  const double gradients = (mask.get(0) ? 1.0 : 0.0) + (mask.get(1) ? 1.0 : 0.0);
  return products(2 * gradients * static_cast<double>(x[0]) * product(w) * spatial);
}

// Kernels differ in the place of the argument.
bool is_causal(const at::RecordFunction& function) {
  const auto schema = function.operator_schema();
  const auto place = schema ? schema->argumentIndexWithName("is_causal") : std::nullopt;
  const auto index = static_cast<std::size_t>(place.value_or(0));
  const Inputs inputs = function.inputs();
  return place && index < inputs.size() && inputs[index].isBool() && inputs[index].toBool();
}

// Queries [batch, heads, S, D], keys [batch, heads, T, D], values [batch, heads, T, Dv] at `first`.
std::optional<AttentionSize> attention_size(const at::RecordFunction& function, std::size_t first) {
  const Inputs inputs = function.inputs();
  const Sizes q = sizes_at(inputs, first), k = sizes_at(inputs, first + 1),
              v = sizes_at(inputs, first + 2);
  if (q.size() != 4 || k.size() != 4 || v.size() != 4) return std::nullopt;
  return AttentionSize{.heads = static_cast<double>(q[0] * q[1]),
                       .queries = static_cast<double>(q[2]),
                       .keys = static_cast<double>(k[2]),
                       .head_dim = static_cast<double>(q[3]),
                       .value_dim = static_cast<double>(v[3]),
                       .causal = is_causal(function)};
}

std::optional<Flops> attention(const at::RecordFunction& function) {
  const auto size = attention_size(function, 0);
  return size ? std::optional(size->forward()) : std::nullopt;
}

std::optional<Flops> attention_backward(const at::RecordFunction& function) {
  const auto size = attention_size(function, 1);  // after the gradient of the output
  return size ? std::optional(size->backward()) : std::nullopt;
}

using Formula = std::optional<Flops> (*)(const at::RecordFunction& function);

const std::unordered_map<std::string_view, Formula>& formulas() {
  static const std::unordered_map<std::string_view, Formula> kFormulas{
      {"aten::mm", &matrix_product<0>},
      {"aten::bmm", &matrix_product<0>},
      {"aten::_scaled_mm", &matrix_product<0>},
      {"aten::addmm", &matrix_product<1>},
      {"aten::baddbmm", &matrix_product<1>},
      {"mkldnn::_linear_pointwise", &linear_product},
      {"aten::convolution", &convolution},
      {"aten::convolution_backward", &convolution_backward},
      {"aten::_scaled_dot_product_flash_attention_for_cpu", &attention},
      {"aten::_scaled_dot_product_flash_attention", &attention},
      {"aten::_scaled_dot_product_efficient_attention", &attention},
      {"aten::_scaled_dot_product_cudnn_attention", &attention},
      {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", &attention_backward},
      {"aten::_scaled_dot_product_flash_attention_backward", &attention_backward},
      {"aten::_scaled_dot_product_efficient_attention_backward", &attention_backward},
      {"aten::_scaled_dot_product_cudnn_attention_backward", &attention_backward},
  };
  return kFormulas;
}

}  // namespace

std::optional<Flops> flops_of(const at::RecordFunction& function) {
  const auto found = formulas().find(function.name());
  return found == formulas().end() ? std::nullopt : found->second(function);
}

}  // namespace scaletrain::units
