#include "lib/optim/clip.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

namespace scaletrain::optim {

at::Tensor grad_norm(const std::vector<at::Tensor>& gradients) {
  if (gradients.empty()) return at::zeros({});
  const at::NoGradGuard no_grad;
  return at::linalg_vector_norm(at::stack(at::_foreach_norm(gradients, 2)));
}

void clip_grad_norm(const std::vector<at::Tensor>& gradients, const at::Tensor& norm,
                    double max_norm) {
  if (gradients.empty()) return;
  const at::NoGradGuard no_grad;
  const at::Tensor factor = at::mul(at::reciprocal(at::add(norm, 1e-6)), max_norm).clamp_max(1.0);
  // On a CPU the factor is at hand; on a device looking at it would wait for all queued work.
  if (norm.is_cpu() && factor.item<float>() >= 1) return;
  at::_foreach_mul_(gradients, factor);
}

}  // namespace scaletrain::optim
