// SGD with a step for each tensor as long as its weights ask (You et al., Large Batch Training of
// Convolutional Networks, 2017, algorithm 1), timm's formula.
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/_foreach_sub.h>

#include "lib/optim/foreach_optimizer.h"

namespace scaletrain::optim {
namespace {

class Lars : public ForeachOptimizer {
 public:
  Lars(const recipe::Optimizer& config, const std::vector<NamedParameter>& parameters)
      : ForeachOptimizer(config, parameters, Decay::kOwn, {{"momentum_buffer"}}),
        momentum_(config.number("momentum")),
        nesterov_(config.flag("nesterov")),
        trust_(config.number("trust_coefficient")),
        eps_(config.number("eps")),
        always_adapt_(config.flag("always_adapt")),
        trust_clip_(config.flag("trust_clip")) {}

 private:
  void update(const StepNumbers& numbers, GroupLists& group) override {
    const double decay = group.weight_decay;
    std::vector<at::Tensor> change = at::_foreach_add(group.gradients, group.parameters, decay);
    if (decay != 0 || always_adapt_) {
      const std::vector<at::Tensor> lengths = at::_foreach_norm(group.parameters);
      const std::vector<at::Tensor> slopes = at::_foreach_norm(group.gradients);
      for (std::size_t i = 0; i < change.size(); ++i) {
        at::Tensor trust = trust_ratio(
            lengths[i], slopes[i], trust_ * lengths[i] / (slopes[i] + lengths[i] * decay + eps_));
        if (trust_clip_) trust = (trust / numbers.lr).clamp_max_(1);
        change[i].mul_(trust);
      }
    }
    multiply(change, numbers.taken);
    const std::vector<at::Tensor>& velocity = group.states[0];
    multiply(velocity, numbers.keep(momentum_));
    at::_foreach_add_(velocity, change);
    if (nesterov_) {
      at::_foreach_add_(change, velocity, momentum_);
    } else {
      change = at::_foreach_mul(velocity, 1);
    }
    multiply(change, numbers.lr);
    at::_foreach_sub_(group.parameters, change);
  }

  double momentum_;
  bool nesterov_;
  double trust_, eps_;
  bool always_adapt_, trust_clip_;
};

}  // namespace

std::unique_ptr<Optimizer> make_lars(const recipe::Optimizer& config,
                                     std::vector<NamedParameter> parameters) {
  return std::make_unique<Lars>(config, parameters);
}

}  // namespace scaletrain::optim
