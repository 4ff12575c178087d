#include "lib/optim/clip.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/add.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/reciprocal.h>

namespace scaletrain::optim {

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

at::Tensor not_finite(const std::vector<at::Tensor>& values) {
  const at::NoGradGuard no_grad;
  at::Tensor sum = values.front().to(at::kDouble).mul(0);  // of zeros, NaN where one is not finite
  for (std::size_t i = 1; i < values.size(); ++i) sum = sum.add(values[i].mul(0));
  return sum.ne(0).to(at::kFloat);
}

}  // namespace scaletrain::optim
