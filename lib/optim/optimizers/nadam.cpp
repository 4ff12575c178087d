// Adam with Nesterov's momentum (Dozat, Incorporating Nesterov Momentum into Adam, 2016),
// torch.optim.NAdam's formula, with its momentum that grows: mu_t = beta1 * (1 - 0.5 * 0.96^(t *
// momentum_decay)).
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_sub.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/scalar_tensor.h>

#include "lib/optim/foreach_optimizer.h"

namespace scaletrain::optim {
namespace {

class NAdam : public ForeachOptimizer {
 public:
  NAdam(const recipe::Optimizer& config, const std::vector<NamedParameter>& parameters)
      : ForeachOptimizer(config, parameters,
                         config.flag("decoupled") ? Decay::kDecoupled : Decay::kL2,
                         {{"exp_avg"}, {"exp_avg_sq"}}),
        beta1_(config.number("beta1")),
        beta2_(config.number("beta2")),
        eps_(config.number("eps")),
        momentum_decay_(config.number("momentum_decay")),
        product_(add_number("mu_product", 1)) {}

 private:
  at::Tensor momentum_at(const at::Tensor& step) const {
    return beta1_ *
           (1 - 0.5 * at::pow(at::scalar_tensor(0.96, step.options()), step * momentum_decay_));
  }

  void begin(const StepNumbers& numbers) override {
    momentum_ = momentum_at(numbers.step);
    next_momentum_ = momentum_at(numbers.step + 1);
    running_product_ = product_ * momentum_;  // of a step that is left out too: it is no 1
    product_.mul_(numbers.keep(momentum_));
  }

  void update(const StepNumbers& numbers, GroupLists& group) override {
    const std::vector<at::Tensor>&average = group.states[0], &squares = group.states[1];
    move_average(numbers, average, beta1_, group.gradients);
    move_squared_average(numbers, squares, beta2_, group.gradients);
    const std::vector<at::Tensor> denominator =
        denominators(squares, numbers.correction(beta2_), eps_);
    const std::vector<at::Tensor> now = at::_foreach_div(group.gradients, denominator);
    multiply(now, numbers.lr * (1 - momentum_) / (1 - running_product_));
    const std::vector<at::Tensor> ahead = at::_foreach_div(average, denominator);
    multiply(ahead, numbers.lr * next_momentum_ / (1 - running_product_ * next_momentum_));
    at::_foreach_sub_(group.parameters, now);
    at::_foreach_sub_(group.parameters, ahead);
  }

  double beta1_, beta2_, eps_, momentum_decay_;
  at::Tensor product_;                   // product of the momenta so far
  at::Tensor momentum_, next_momentum_;  // momenta of this and the next step
  at::Tensor running_product_;           // with this step's
};

}  // namespace

std::unique_ptr<Optimizer> make_nadam(const recipe::Optimizer& config,
                                      std::vector<NamedParameter> parameters) {
  return std::make_unique<NAdam>(config, parameters);
}

}  // namespace scaletrain::optim
