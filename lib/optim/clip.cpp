#include "lib/optim/clip.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_clamp_max.h>
#include <ATen/ops/_foreach_clamp_min.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/add.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/reciprocal.h>

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

}  // namespace

void clip_grad_norm(const std::vector<at::Tensor>& gradients, const at::Tensor& norm,
                    double max_norm) {
  if (gradients.empty()) return;
  const at::NoGradGuard no_grad;
  const at::Tensor factor = at::mul(at::reciprocal(at::add(norm, 1e-6)), max_norm)
                                .clamp_max(1.0)
                                .to(gradients.front().scalar_type());
  if (!norm.is_cpu()) {  // looking at the factor would wait for all queued work
    at::_foreach_mul_(gradients, factor);
    return;
  }
  if (factor.ge(1).const_data_ptr<bool>()[0]) return;  // nothing is queued on a CPU
  for (const at::Tensor& gradient : gradients) gradient.mul_(factor);
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

void clip(const recipe::Clip& limits, const std::vector<units::NamedParameter>& parameters,
          const std::vector<at::Tensor>& gradients, const at::Tensor& norm) {
  if (limits.norm) clip_grad_norm(gradients, norm, *limits.norm);
  if (limits.value) clip_grad_value(gradients, *limits.value);
  if (limits.adaptive) clip_grad_adaptive(parameters, *limits.adaptive);
}

at::Tensor not_finite(const std::vector<at::Tensor>& values) {
  const at::NoGradGuard no_grad;
  at::Tensor sum = values.front().to(at::kDouble).mul(0);  // of zeros, NaN where one is not finite
  for (std::size_t i = 1; i < values.size(); ++i) sum = sum.add(values[i].mul(0));
  return sum.ne(0).to(at::kFloat);
}

}  // namespace scaletrain::optim
