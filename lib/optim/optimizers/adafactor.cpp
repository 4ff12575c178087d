// Adafactor: Adam with a factored second moment, the means of squared gradients over rows and over
// columns, and steps relative to a tensor's size (Shazeer and Stern, Adafactor, 2018, algorithms 4
// and 5). It follows torch.optim.Adafactor: the last two dimensions of a tensor are its rows and
// columns.
#include <ATen/TensorOperators.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/zeros.h>

#include <array>
#include <cmath>
#include <limits>

#include "lib/optim/parameter_group.h"
#include "lib/optim/tensor_optimizer.h"

namespace scaletrain::optim {
namespace {

// The epsilon of the type that is computed in, as torch.optim.Adafactor takes it.
double least_mean(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kDouble ? std::numeric_limits<double>::epsilon()
                                             : std::numeric_limits<float>::epsilon();
}

// Over dimension `dim`, which stays as one of size 1.
at::Tensor mean_square(const at::Tensor& tensor, std::int64_t dim) {
  return at::linalg_vector_norm(tensor, 2, dim, /*keepdim=*/true).square_().div_(tensor.size(dim));
}

at::Tensor root_mean_square(const at::Tensor& tensor) {
  return at::linalg_vector_norm(tensor).to(at::kDouble) /
         std::sqrt(static_cast<double>(tensor.numel()));
}

class Adafactor : public TensorOptimizer {
 public:
  Adafactor(const recipe::Optimizer& config, const std::vector<NamedParameter>& parameters)
      : TensorOptimizer(config, parameters, make_states),
        beta2_decay_(config.number("beta2_decay")),
        eps_(config.number("eps")),
        clip_threshold_(config.number("clip_threshold")) {}

 private:
  static std::vector<TensorState> make_states(const NamedParameter& parameter) {
    const at::Tensor& tensor = parameter.tensor;
    std::vector<std::int64_t> rows = tensor.sizes().vec(), columns = rows;
    if (tensor.dim() < 2) {
      return {{.kind = "variance", .tensor = at::zeros(rows, tensor.options())}};
    }
    rows.back() = 1;
    columns[columns.size() - 2] = 1;
    return {{.kind = "row_var", .tensor = at::zeros(rows, tensor.options()), .is_whole = true},
            {.kind = "col_var", .tensor = at::zeros(columns, tensor.options()), .is_whole = true}};
  }

  void update(const TensorStep& one) override {
    const at::Tensor share = at::pow(one.number, beta2_decay_).to(one.gradient.scalar_type());
    const at::Tensor rate =
        at::rsqrt(one.number).clamp_max(one.lr) * root_mean_square(one.parameter).clamp_min(eps_);
    one.parameter.mul_(1 - one.lr * one.weight_decay);
    const double least = least_mean(one.gradient);
    const at::Tensor change =
        variance(one, share).clamp_min_(least * least).rsqrt_().mul_(one.gradient);
    const at::Tensor excess = (root_mean_square(change) / clip_threshold_).clamp_min(1);
    one.parameter.sub_(change.mul_((rate / excess).to(change.scalar_type())));
  }

  // With this step's gradient, as a new tensor.
  static at::Tensor variance(const TensorStep& one, const at::Tensor& share) {
    if (one.gradient.dim() < 2) {
      one.states[0].lerp_(one.gradient.square(), share);
      return one.states[0].clone();
    }
    const at::Tensor &rows = one.states[0], &columns = one.states[1];
    rows.lerp_(mean_square(one.gradient, -1), share);
    columns.lerp_(mean_square(one.gradient, -2), share);
    return at::matmul(rows, columns)
        .div_(rows.mean(-2, /*keepdim=*/true).clamp_min_(least_mean(rows)));
  }

  double beta2_decay_, eps_, clip_threshold_;
};

}  // namespace

std::unique_ptr<Optimizer> make_adafactor(const recipe::Optimizer& config,
                                          std::vector<NamedParameter> parameters) {
  require_whole("/optimizer/name", parameters);
  return std::make_unique<Adafactor>(config, parameters);
}

}  // namespace scaletrain::optim
