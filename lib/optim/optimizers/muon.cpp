// Muon: orthogonalized momentum for the matrices of hidden layers (Jordan, Muon: An optimizer for
// hidden layers in neural networks, 2024), as in torch.optim.Muon. A convolution's kernel counts as
// the matrix [out, all others]. AdamW updates all other parameters.
#include <ATen/ops/addmm.h>
#include <ATen/ops/lerp.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "lib/core/error.h"
#include "lib/optim/parameter_group.h"
#include "lib/optim/tensor_optimizer.h"

namespace scaletrain::optim {
namespace {

// Coefficients of Jordan's quintic polynomial a x + b x^3 + c x^5, and the lower bound of a norm.
constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315, kLeastNorm = 1e-7;

bool is_matrix(const NamedParameter& parameter) {
  return parameter.decays && parameter.dimensions() > 1;
}
bool is_hidden_matrix(const NamedParameter& parameter) {
  return parameter.hidden && is_matrix(parameter);
}

// About the nearest matrix with singular values of 1, those of the result being 0.5 to 1.5; bf16.
at::Tensor orthogonal(const at::Tensor& matrix, std::int64_t steps) {
  const bool is_tall = matrix.size(0) > matrix.size(1);
  at::Tensor x = matrix.to(at::kBFloat16);
  if (is_tall) x = x.t();
  x = x.div(at::linalg_vector_norm(x).clamp_min(kLeastNorm));
  for (std::int64_t i = 0; i < steps; ++i) {
    const at::Tensor gram = at::mm(x, x.t());
    x = at::addmm(x, at::addmm(gram, gram, gram, kB, kC), x, kA);
  }
  return is_tall ? x.t() : x;
}

class OrthogonalMomentum : public TensorOptimizer {
 public:
  OrthogonalMomentum(const recipe::Optimizer& config, const std::vector<NamedParameter>& matrices)
      : TensorOptimizer(config, matrices,
                        [](const NamedParameter& parameter) -> std::vector<TensorState> {
                          return {{.kind = "momentum_buffer",
                                   .tensor = at::zeros_like(parameter.tensor.detach())}};
                        }),
        momentum_(config.number("momentum")),
        nesterov_(config.flag("nesterov")),
        ns_steps_(config.integer("ns_steps")),
        matches_adamw_(config.text("adjust_lr_fn") == "match_rms_adamw") {}

 private:
  void update(const TensorStep& one) override {
    const at::Tensor& average = one.states[0];
    average.lerp_(one.gradient, 1 - momentum_);
    const at::Tensor ahead = nesterov_ ? at::lerp(one.gradient, average, momentum_) : average;
    const at::Tensor matrix = ahead.reshape({ahead.size(0), -1});
    one.parameter.mul_(1 - one.lr * one.weight_decay);
    one.parameter.sub_(orthogonal(matrix, ns_steps_).reshape(one.parameter.sizes()),
                       one.lr * lr_factor(matrix));
  }

  // Scales steps to about the same length for matrices of all shapes: Jordan's factor, or the one
  // of Liu et al., Muon is Scalable for LLM Training, 2025, section 2.2.
  double lr_factor(const at::Tensor& matrix) const {
    const auto rows = static_cast<double>(matrix.size(0));
    const auto columns = static_cast<double>(matrix.size(1));
    if (matches_adamw_) return 0.2 * std::sqrt(std::max(rows, columns));
    return std::sqrt(std::max(1.0, rows / columns));
  }

  double momentum_;
  bool nesterov_;
  std::int64_t ns_steps_;
  bool matches_adamw_;
};

class Muon : public Optimizer {
 public:
  Muon(const recipe::Optimizer& config, const std::vector<NamedParameter>& matrices,
       std::vector<NamedParameter> others)
      : matrices_(config, matrices) {
    recipe::Optimizer adamw = config;
    adamw.name = "adamw";
    adamw.centralize_gradients = false;
    others_ = make_optimizer(adamw, std::move(others));
    const double own_lr = config.number("adamw_lr");
    if (own_lr > 0) others_lr_scale_ = own_lr / config.lr;
  }

  using Optimizer::step;
  void step(double lr, const std::optional<at::Tensor>& found_inf) override {
    matrices_.step(lr, found_inf);
    others_->step(lr * others_lr_scale_, found_inf);
  }

  void set_weight_decay(double weight_decay) override {
    matrices_.set_weight_decay(weight_decay);
    others_->set_weight_decay(weight_decay);
  }

  units::Shards state() override {
    units::Shards named = others_->state();  // with AdamW's count of steps
    for (const auto& [name, shard] : matrices_.state()) {
      if (name != "step") named.emplace(name, shard);
    }
    return named;
  }

 private:
  OrthogonalMomentum matrices_;
  std::unique_ptr<Optimizer> others_;
  double others_lr_scale_ = 1;
};

}  // namespace

void check_optimizer(const recipe::Optimizer& config,
                     const std::vector<NamedParameter>& parameters) {
  const bool has_matrices = std::any_of(parameters.begin(), parameters.end(), is_matrix);
  if (config.name != "muon" || !has_matrices) return;
  if (std::any_of(parameters.begin(), parameters.end(), is_hidden_matrix)) return;
  throw core::RecipeError("/optimizer/name", "no hidden layer has a matrix for muon to train",
                          "use adamw, or a model with more layers");
}

std::unique_ptr<Optimizer> make_muon(const recipe::Optimizer& config,
                                     std::vector<NamedParameter> parameters) {
  require_whole("/optimizer/name", parameters);
  const auto others = std::stable_partition(parameters.begin(), parameters.end(), is_hidden_matrix);
  const std::vector<NamedParameter> matrices(parameters.begin(), others);
  return std::make_unique<Muon>(config, matrices,
                                std::vector<NamedParameter>(others, parameters.end()));
}

}  // namespace scaletrain::optim
