#include "lib/optim/sam.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_abs.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/_foreach_mul.h>

namespace scaletrain::optim {

Sam::Sam(const recipe::Sam& config, const std::vector<units::NamedParameter>& parameters)
    : config_(config) {
  for (const units::NamedParameter& parameter : parameters) {
    parameters_.push_back(parameter.tensor);
    kept_.push_back(parameter.tensor.detach().clone());
  }
}

std::vector<at::Tensor> Sam::gradients() const {
  std::vector<at::Tensor> result;
  result.reserve(parameters_.size());
  for (const at::Tensor& parameter : parameters_) result.push_back(parameter.grad());
  return result;
}

void Sam::weigh() {
  if (!config_.adaptive) return;
  const at::NoGradGuard no_grad;
  at::_foreach_mul_(gradients(), at::_foreach_abs(parameters_));
}

void Sam::ascend(const at::Tensor& norm) {
  if (parameters_.empty()) return;
  const at::NoGradGuard no_grad;
  at::_foreach_copy_(kept_, parameters_);
  const at::Tensor scale =
      ((norm + 1e-12).reciprocal() * config_.rho).to(parameters_.front().scalar_type());
  std::vector<at::Tensor> way = at::_foreach_mul(gradients(), scale);
  if (config_.adaptive) at::_foreach_mul_(way, at::_foreach_abs(parameters_));
  at::_foreach_add_(parameters_, way);
}

void Sam::descend() {
  const at::NoGradGuard no_grad;
  at::_foreach_copy_(parameters_, kept_);
}

}  // namespace scaletrain::optim
