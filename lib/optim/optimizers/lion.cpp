// The sign of an average of gradients (Chen et al., Symbolic Discovery of Optimization Algorithms,
// 2023, algorithm 2) with decoupled weight decay.
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_sign.h>
#include <ATen/ops/_foreach_sub.h>

#include "lib/optim/foreach_optimizer.h"

namespace scaletrain::optim {
namespace {

class Lion : public ForeachOptimizer {
 public:
  Lion(const recipe::Optimizer& config, const std::vector<NamedParameter>& parameters)
      : ForeachOptimizer(config, parameters, Decay::kDecoupled, {{"exp_avg"}}),
        beta1_(config.number("beta1")),
        beta2_(config.number("beta2")) {}

 private:
  void update(const StepNumbers& numbers, GroupLists& group) override {
    const std::vector<at::Tensor>& average = group.states[0];
    std::vector<at::Tensor> change = at::_foreach_mul(average, beta1_);
    at::_foreach_add_(change, group.gradients, 1 - beta1_);
    at::_foreach_sign_(change);
    multiply(change, numbers.lr);
    at::_foreach_sub_(group.parameters, change);
    move_average(numbers, average, beta2_, group.gradients);
  }

  double beta1_, beta2_;
};

}  // namespace

std::unique_ptr<Optimizer> make_lion(const recipe::Optimizer& config,
                                     std::vector<NamedParameter> parameters) {
  return std::make_unique<Lion>(config, parameters);
}

}  // namespace scaletrain::optim
