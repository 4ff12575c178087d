#include "lib/optim/clip.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_clamp_max.h>
#include <ATen/ops/_foreach_clamp_min.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/add.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/reciprocal.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <numeric>

namespace scaletrain::optim {
namespace {

constexpr double kLeastWeightNorm = 1e-3, kLeastGradientNorm = 1e-6;

// The L2 norm of each unit of `tensor`, shaped so that it is multiplied with its unit.
at::Tensor unit_norms(const at::Tensor& tensor) {
  if (tensor.dim() <= 1) return at::linalg_vector_norm(tensor);
  std::vector<std::int64_t> inside(static_cast<std::size_t>(tensor.dim() - 1));
  std::iota(inside.begin(), inside.end(), 1);
  return at::linalg_vector_norm(tensor, 2, inside, /*keepdim=*/true);
}

// Units of a part of a parameter; `first` is its first unit's number among those of all parameters.
struct UnitRange {
  const units::NamedParameter* part;
  std::int64_t first, units, unit_elements;

  // Returns the unit number of each element of the part.
  at::Tensor numbers(at::Device device) const {
    const std::int64_t begin = part->begin, end = begin + part->tensor.numel();
    return at::arange(begin, end, at::TensorOptions(at::kLong).device(device))
        .div_(unit_elements, "floor")
        .add_(first);
  }
};

UnitRange range_of(const units::NamedParameter& part, std::int64_t first) {
  const std::vector<std::int64_t> shape = part.shape();
  const std::int64_t elements = format::element_count(shape);
  const std::int64_t units = shape.size() <= 1 ? 1 : shape.front();
  return {.part = &part,
          .first = first,
          .units = units,
          .unit_elements = std::max<std::int64_t>(1, elements / std::max<std::int64_t>(1, units))};
}

void add_squares(const UnitRange& range, const at::Tensor& values, const at::Tensor& sums) {
  sums.index_add_(0, range.numbers(values.device()), values.to(at::kDouble).square());
}

// Multiplies the gradients by `scale`, a 0-dim tensor, if that is below 1.
void shrink(const std::vector<at::Tensor>& gradients, const at::Tensor& scale) {
  const at::Tensor factor = scale.clamp_max(1.0).to(gradients.front().scalar_type());
  if (!scale.is_cpu()) {  // looking at the factor would wait for all queued work
    at::_foreach_mul_(gradients, factor);
    return;
  }
  if (factor.ge(1).const_data_ptr<bool>()[0]) return;  // nothing is queued on a CPU
  for (const at::Tensor& gradient : gradients) gradient.mul_(factor);
}

}  // namespace

void clip_grad_norm(const std::vector<at::Tensor>& gradients, const at::Tensor& norm,
                    double max_norm) {
  if (gradients.empty()) return;
  const at::NoGradGuard no_grad;
  shrink(gradients, at::mul(at::reciprocal(at::add(norm, 1e-6)), max_norm));
}

void clip_grad_norm(const std::vector<at::Tensor>& gradients, const at::Tensor& norm,
                    const at::Tensor& max_norm) {
  if (gradients.empty()) return;
  const at::NoGradGuard no_grad;
  shrink(gradients, at::mul(at::reciprocal(at::add(norm, 1e-6)), max_norm));
}

void clip_grad_value(const std::vector<at::Tensor>& gradients, double limit) {
  if (gradients.empty()) return;
  const at::NoGradGuard no_grad;
  at::_foreach_clamp_min_(gradients, -limit);
  at::_foreach_clamp_max_(gradients, limit);
}

void clip_grad_adaptive(const std::vector<units::NamedParameter>& parameters, double factor) {
  const at::NoGradGuard no_grad;
  for (const units::NamedParameter& parameter : parameters) {
    at::Tensor gradient = parameter.tensor.grad();
    if (parameter.is_head || !gradient.defined()) continue;
    const at::Tensor most =
        unit_norms(parameter.tensor.detach()).clamp_min_(kLeastWeightNorm).mul_(factor);
    const at::Tensor norms = unit_norms(gradient);
    const at::Tensor clipped = most / norms.clamp_min(kLeastGradientNorm);
    gradient.mul_(clipped.masked_fill(norms.lt(most), 1));
  }
}

void clip_grad_adaptive(const ShardedParameters& shards, double factor) {
  const at::NoGradGuard no_grad;
  std::vector<UnitRange> ranges;
  std::int64_t units = 0;
  for (const units::NamedParameter& part : shards.parts) {
    if (part.is_head) continue;
    ranges.push_back(range_of(part, units));
    units += ranges.back().units;
  }
  if (units == 0) return;
  const at::Device device = shards.parts.front().tensor.device();
  const at::Tensor squares = at::zeros({2, units}, at::TensorOptions(at::kDouble).device(device));
  for (const UnitRange& range : ranges) {
    if (range.part->tensor.numel() == 0) continue;
    add_squares(range, range.part->tensor.detach(), squares[0]);
    add_squares(range, range.part->tensor.grad(), squares[1]);
  }
  shards.sum(squares);
  const at::Tensor norms = squares.sqrt();
  const at::Tensor most = norms[0].clamp_min(kLeastWeightNorm).mul(factor);
  const at::Tensor factors =
      (most / norms[1].clamp_min(kLeastGradientNorm)).masked_fill(norms[1].lt(most), 1);
  for (const UnitRange& range : ranges) {
    if (range.part->tensor.numel() == 0) continue;
    at::Tensor gradient = range.part->tensor.grad();
    const at::ScalarType type = at::promote_types(gradient.scalar_type(), at::kFloat);
    gradient.mul_(factors.to(type).index_select(0, range.numbers(device)));
  }
}

void clip(const recipe::Clip& limits, const std::vector<units::NamedParameter>& parameters,
          const std::vector<at::Tensor>& gradients, const at::Tensor& norm,
          const ShardedParameters& shards) {
  if (limits.norm) clip_grad_norm(gradients, norm, *limits.norm);
  if (limits.value) clip_grad_value(gradients, *limits.value);
  if (!limits.adaptive) return;
  if (shards.parts.empty()) {
    clip_grad_adaptive(parameters, *limits.adaptive);
  } else {
    clip_grad_adaptive(shards, *limits.adaptive);
  }
}

at::Tensor not_finite(const std::vector<at::Tensor>& values) {
  const at::NoGradGuard no_grad;
  at::Tensor sum = values.front().to(at::kDouble).mul(0);  // 0, or NaN if a value is not finite
  for (std::size_t i = 1; i < values.size(); ++i) sum = sum.add(values[i].mul(0));
  return sum.ne(0).to(at::kFloat);
}

}  // namespace scaletrain::optim
