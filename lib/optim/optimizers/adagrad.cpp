// Steps divided by the root of all squared gradients so far (Duchi et al., Adaptive Subgradient
// Methods, 2011), torch.optim.Adagrad's formula.
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_sqrt.h>
#include <ATen/ops/_foreach_sub.h>

#include "lib/optim/foreach_optimizer.h"

namespace scaletrain::optim {
namespace {

class Adagrad : public ForeachOptimizer {
 public:
  Adagrad(const recipe::Optimizer& config, const std::vector<NamedParameter>& parameters)
      : ForeachOptimizer(config, parameters, Decay::kL2,
                         {{"sum", config.number("initial_accumulator_value")}}),
        lr_decay_(config.number("lr_decay")),
        eps_(config.number("eps")) {}

 private:
  void update(const StepNumbers& numbers, GroupLists& group) override {
    const std::vector<at::Tensor>& sums = group.states[0];
    at::_foreach_addcmul_(sums, group.gradients, group.gradients, 1);
    std::vector<at::Tensor> denominator = at::_foreach_sqrt(sums);
    at::_foreach_add_(denominator, eps_);
    const std::vector<at::Tensor> change = at::_foreach_div(group.gradients, denominator);
    multiply(change, numbers.lr / (1 + (numbers.step - 1) * lr_decay_));
    at::_foreach_sub_(group.parameters, change);
  }

  double lr_decay_, eps_;
};

}  // namespace

std::unique_ptr<Optimizer> make_adagrad(const recipe::Optimizer& config,
                                        std::vector<NamedParameter> parameters) {
  return std::make_unique<Adagrad>(config, parameters);
}

}  // namespace scaletrain::optim
