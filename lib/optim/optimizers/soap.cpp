// SOAP: Adam in the eigenbasis of Shampoo's preconditioner (Vyas et al., SOAP: Improving and
// Stabilizing Shampoo using Adam, 2024, algorithms 3 and 4), with AdamW's eps, correction and
// weight decay. A convolution's kernel counts as the matrix [out, all others]; AdamW updates
// tensors of one dimension.
//
// Unlike in the paper, the bases begin as the identity, which is AdamW, instead of an
// eigendecomposition after the first step, which would block the host. When the basis changes, the
// squared gradients are transformed as those of uncorrelated coordinates; the paper does not change
// them.
#include <ATen/TensorOperators.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/linalg_qr.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/zeros.h>

#include <array>
#include <utility>

#include "lib/optim/parameter_group.h"
#include "lib/optim/tensor_optimizer.h"

namespace scaletrain::optim {
namespace {

// The averages of one parameter, in the order of its states.
enum SoapState : std::size_t { kAverage, kSquares, kGrams, kBases = kGrams + 2 };

class Soap : public TensorOptimizer {
 public:
  Soap(const recipe::Optimizer& config, const std::vector<NamedParameter>& parameters)
      : TensorOptimizer(config, parameters,
                        [&](const NamedParameter& parameter) {
                          return make_states(parameter, config.integer("max_dim"));
                        }),
        beta1_(config.number("beta1")),
        beta2_(config.number("beta2")),
        preconditioner_beta_(config.number("preconditioner_beta")),
        eps_(config.number("eps")),
        frequency_(config.integer("frequency")) {}

 private:
  // A dimension larger than `max_dim` has no matrices and is not rotated.
  static std::vector<TensorState> make_states(const NamedParameter& parameter,
                                              std::int64_t max_dim) {
    const at::Tensor tensor = parameter.tensor.detach();
    std::vector<TensorState> states{
        {.kind = "exp_avg", .tensor = at::zeros(tensor.sizes(), tensor.options())},
        {.kind = "exp_avg_sq", .tensor = at::zeros(tensor.sizes(), tensor.options())}};
    if (tensor.dim() < 2) return states;
    std::array<std::int64_t, 2> sides{tensor.size(0), tensor.numel() / tensor.size(0)};
    for (std::int64_t& side : sides) side = side > max_dim ? 0 : side;
    const auto add = [&states](const char* kind, at::Tensor matrix) {
      states.push_back({.kind = kind, .tensor = std::move(matrix), .is_whole = true});
    };
    add("gram_left", at::zeros({sides[0], sides[0]}, tensor.options()));
    add("gram_right", at::zeros({sides[1], sides[1]}, tensor.options()));
    add("basis_left", at::eye(sides[0], tensor.options()));
    add("basis_right", at::eye(sides[1], tensor.options()));
    return states;
  }

  void update(const TensorStep& one) override {
    const at::Tensor& average = one.states[kAverage];
    average.mul_(beta1_).add_(one.gradient, 1 - beta1_);
    one.parameter.mul_(1 - one.lr * one.weight_decay);
    if (one.gradient.dim() < 2) {
      one.parameter.sub_(adam(average, one.gradient, one.states[kSquares], one));
      return;
    }
    const at::Tensor gradient = one.gradient.reshape({one.gradient.size(0), -1});
    const at::Tensor squares = one.states[kSquares].view(gradient.sizes());
    const at::Tensor &left = one.states[kBases], &right = one.states[kBases + 1];
    const at::Tensor change = adam(between(left.t(), average.view(gradient.sizes()), right),
                                   between(left.t(), gradient, right), squares, one);
    one.parameter.sub_(between(left, change, right.t()).view(one.parameter.sizes()));
    follow(one.states[kGrams], gradient);
    follow(one.states[kGrams + 1], gradient.t());
    if (one.tried % frequency_ == 0) renew(one.states, squares);
  }

  // Returns Adam's update of a parameter, for an average and a gradient in any basis.
  at::Tensor adam(const at::Tensor& average, const at::Tensor& gradient, const at::Tensor& squares,
                  const TensorStep& one) const {
    squares.mul_(beta2_).addcmul_(gradient, gradient, 1 - beta2_);
    const auto correction = [&](double share) {
      return (1 - at::pow(share, one.number)).to(squares.scalar_type());
    };
    const at::Tensor denominator = (squares / correction(beta2_)).sqrt_().add_(eps_);
    return (average / denominator).mul_(one.lr / correction(beta1_));
  }

  // Returns left * matrix * right, without the sides that have no basis.
  static at::Tensor between(const at::Tensor& left, const at::Tensor& matrix,
                            const at::Tensor& right) {
    const at::Tensor half = left.numel() > 0 ? at::matmul(left, matrix) : matrix;
    return right.numel() > 0 ? at::matmul(half, right) : half;
  }

  // Moves the average of gradient * gradient^T.
  void follow(const at::Tensor& gram, const at::Tensor& gradient) const {
    if (gram.numel() == 0) return;
    gram.mul_(preconditioner_beta_)
        .add_(at::matmul(gradient, gradient.t()), 1 - preconditioner_beta_);
  }

  // One step of the power iteration towards the eigenvectors of each gram matrix.
  static void renew(const std::vector<at::Tensor>& states, const at::Tensor& squares) {
    std::array<at::Tensor, 2> turns;  // squared cosines between the new axes and the old
    for (std::size_t side = 0; side < 2; ++side) {
      const at::Tensor& basis = states[kBases + side];
      if (basis.numel() > 0) {
        const at::Tensor renewed =
            std::get<0>(at::linalg_qr(at::matmul(states[kGrams + side], basis)));
        turns[side] = at::matmul(renewed.t(), basis).square_();
        basis.copy_(renewed);
      } else {
        turns[side] = basis;
      }
    }
    squares.copy_(between(turns[0], squares, turns[1].t()));
  }

  double beta1_, beta2_, preconditioner_beta_, eps_;
  std::int64_t frequency_;
};

}  // namespace

std::unique_ptr<Optimizer> make_soap(const recipe::Optimizer& config,
                                     std::vector<NamedParameter> parameters) {
  require_whole("/optimizer/name", parameters);
  return std::make_unique<Soap>(config, parameters);
}

}  // namespace scaletrain::optim
