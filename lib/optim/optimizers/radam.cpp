// Adam whose adaptive step waits until its variance is known (Liu et al., On the Variance of the
// Adaptive Learning Rate and Beyond, 2020, algorithm 2), torch.optim.RAdam's formula.
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_sub.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>

#include "lib/optim/foreach_optimizer.h"

namespace scaletrain::optim {
namespace {

// The length of the average from which the variance is tractable, as PyTorch has it (the paper: 4).
constexpr double kTractable = 5;

class RAdam : public ForeachOptimizer {
 public:
  RAdam(const recipe::Optimizer& config, const std::vector<NamedParameter>& parameters)
      : ForeachOptimizer(config, parameters,
                         config.flag("decoupled") ? Decay::kDecoupled : Decay::kL2,
                         {{"exp_avg"}, {"exp_avg_sq"}}),
        beta1_(config.number("beta1")),
        beta2_(config.number("beta2")),
        eps_(config.number("eps")) {}

 private:
  void update(const StepNumbers& numbers, GroupLists& group) override {
    const std::vector<at::Tensor>&average = group.states[0], &squares = group.states[1];
    move_average(numbers, average, beta1_, group.gradients);
    move_squared_average(numbers, squares, beta2_, group.gradients);

    const double longest = 2 / (1 - beta2_) - 1;
    const at::Tensor correction = numbers.correction(beta2_);
    const at::Tensor length = longest - 2 * numbers.step * (1 - correction) / correction;
    const at::Tensor adapts = length.gt(kTractable);
    const at::Tensor rectified =
        ((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)).sqrt();
    // Not adaptive: the denominator is 1.
    const at::Tensor share = adapts.to(at::kDouble);
    std::vector<at::Tensor> denominator = at::_foreach_sqrt(squares);
    at::_foreach_add_(denominator, eps_);
    multiply(denominator, share);
    at::_foreach_add_(denominator, (1 - share).to(denominator.front().scalar_type()));
    const std::vector<at::Tensor> change = at::_foreach_div(average, denominator);
    const at::Tensor factor =
        at::where(adapts, rectified * correction.sqrt(), at::ones_like(correction));
    multiply(change, numbers.lr * factor / numbers.correction(beta1_));
    at::_foreach_sub_(group.parameters, change);
  }

  double beta1_, beta2_, eps_;
};

}  // namespace

std::unique_ptr<Optimizer> make_radam(const recipe::Optimizer& config,
                                      std::vector<NamedParameter> parameters) {
  return std::make_unique<RAdam>(config, parameters);
}

}  // namespace scaletrain::optim
