// LAMB: Adam's direction, with a step length for each tensor in proportion to the norm of its
// weights (You et al., Large Batch Optimization for Deep Learning, 2020, algorithm 2). It follows
// timm without timm's own clipping, which `clip` replaces.
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/_foreach_sub.h>

#include "lib/optim/foreach_optimizer.h"

namespace scaletrain::optim {
namespace {

class Lamb : public ForeachOptimizer {
 public:
  Lamb(const recipe::Optimizer& config, const std::vector<NamedParameter>& parameters)
      : ForeachOptimizer(config, parameters, Decay::kOwn, {{"exp_avg"}, {"exp_avg_sq"}}),
        beta1_(config.number("beta1")),
        beta2_(config.number("beta2")),
        eps_(config.number("eps")),
        always_adapt_(config.flag("always_adapt")),
        trust_clip_(config.flag("trust_clip")) {}

 private:
  void update(const StepNumbers& numbers, GroupLists& group) override {
    const std::vector<at::Tensor>&average = group.states[0], &squares = group.states[1];
    move_average(numbers, average, beta1_, group.gradients);
    move_squared_average(numbers, squares, beta2_, group.gradients);
    const std::vector<at::Tensor> change =
        at::_foreach_div(average, denominators(squares, numbers.correction(beta2_), eps_));
    multiply(change, 1 / numbers.correction(beta1_));
    if (group.weight_decay != 0) at::_foreach_add_(change, group.parameters, group.weight_decay);
    if (group.weight_decay != 0 || always_adapt_) {
      const std::vector<at::Tensor> lengths = at::_foreach_norm(group.parameters);
      const std::vector<at::Tensor> steps = at::_foreach_norm(change);
      for (std::size_t i = 0; i < change.size(); ++i) {
        at::Tensor trust = trust_ratio(lengths[i], steps[i], lengths[i] / steps[i]);
        if (trust_clip_) trust.clamp_max_(1);
        change[i].mul_(trust);
      }
    }
    multiply(change, numbers.lr);
    at::_foreach_sub_(group.parameters, change);
  }

  double beta1_, beta2_, eps_;
  bool always_adapt_, trust_clip_;
};

}  // namespace

std::unique_ptr<Optimizer> make_lamb(const recipe::Optimizer& config,
                                     std::vector<NamedParameter> parameters) {
  return std::make_unique<Lamb>(config, parameters);
}

}  // namespace scaletrain::optim
