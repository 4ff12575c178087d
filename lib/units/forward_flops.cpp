#include "lib/units/forward_flops.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace scaletrain::units {
namespace {

using Inputs = c10::ArrayRef<const c10::IValue>;
using Sizes = std::vector<std::int64_t>;

thread_local Flops total;
thread_local int counted_depth = 0;  // operations that run inside a counted one are part of it

struct Operation : at::ObserverContext {
  bool is_counted = false;
};

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

// a is [..., m, k], b is [..., k, n].
std::optional<double> matrix_product(const Sizes& a, const Sizes& b) {
  if (a.size() < 2 || b.empty()) return std::nullopt;
  return 2 * product(a) * static_cast<double>(b.back());
}

std::int64_t at_place(const Sizes& values, std::size_t place) {
  return values.size() == 1 ? values[0] : values.at(place);
}

// Each output element, or each input element if transposed, is multiplied with the whole kernel.
std::optional<double> convolution(Inputs inputs) {
  constexpr std::size_t kStride = 3, kPadding = 4, kDilation = 5, kTransposed = 6;
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
  return 2 * static_cast<double>(x[0]) * product(w) * spatial;
}

// a is [..., k], b is [n, k].
std::optional<double> linear_product(const Sizes& a, const Sizes& b) {
  if (a.empty() || b.size() != 2) return std::nullopt;
  return 2 * product(a) * static_cast<double>(b.front());
}

// q is [B, H, S, D], k is [B, H, T, D], v is [B, H, T, Dv].
std::optional<double> attention(const Sizes& q, const Sizes& k, const Sizes& v) {
  if (q.size() != 4 || k.size() != 4 || v.size() != 4) return std::nullopt;
  return 2 * static_cast<double>(q[0] * q[1] * q[2] * k[2]) * static_cast<double>(q[3] + v[3]);
}

// Returns true if the operation was counted.
bool add(std::string_view name, Inputs inputs) {
  std::optional<double> flops;
  if (name == "aten::mm" || name == "aten::bmm") {
    flops = matrix_product(sizes_at(inputs, 0), sizes_at(inputs, 1));
  } else if (name == "aten::addmm" || name == "aten::baddbmm") {
    flops = matrix_product(sizes_at(inputs, 1), sizes_at(inputs, 2));
  } else if (name == "mkldnn::_linear_pointwise") {
    flops = linear_product(sizes_at(inputs, 0), sizes_at(inputs, 1));
  } else if (name == "aten::convolution") {
    flops = convolution(inputs);
  } else if (name == "aten::_scaled_dot_product_flash_attention_for_cpu") {
    flops = attention(sizes_at(inputs, 0), sizes_at(inputs, 1), sizes_at(inputs, 2));
    total.attention += flops.value_or(0);
    return flops.has_value();
  }
  total.products += flops.value_or(0);
  return flops.has_value();
}

std::unique_ptr<at::ObserverContext> start(const at::RecordFunction& function) {
  auto operation = std::make_unique<Operation>();
  if (counted_depth == 0) operation->is_counted = add(function.name(), function.inputs());
  if (operation->is_counted || counted_depth > 0) {
    operation->is_counted = true;
    ++counted_depth;
  }
  return operation;
}

void end(const at::RecordFunction& /*function*/, at::ObserverContext* context) {
  const auto* const operation = dynamic_cast<const Operation*>(context);
  if (operation != nullptr && operation->is_counted) --counted_depth;
}

}  // namespace

void announce_flops(const Flops& flops) {
  if (counted_depth == 0) total += flops;
}

ForwardFlops::ForwardFlops()
    : handle_(at::addThreadLocalCallback(at::RecordFunctionCallback(start, end)
                                             .needsInputs(true)
                                             .scopes({at::RecordScope::FUNCTION}))),
      start_(total) {}

ForwardFlops::~ForwardFlops() { at::removeCallback(handle_); }

Flops ForwardFlops::count() const { return total - start_; }

}  // namespace scaletrain::units
