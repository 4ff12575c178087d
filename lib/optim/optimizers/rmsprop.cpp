// RMSprop: steps divided by the root of the average squared gradient (Hinton, Neural Networks for
// Machine Learning, 2012, lecture 6e). rmsprop follows torch.optim.RMSprop. rmsprop_tf follows
// TensorFlow 1.x, as in timm, with which EfficientNets and MobileNets were trained: averages begin
// at 1, eps is added inside the root, and the learning rate is part of the momentum.
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_sqrt.h>
#include <ATen/ops/_foreach_sub.h>

#include "lib/optim/foreach_optimizer.h"

namespace scaletrain::optim {
namespace {

class RmsProp : public ForeachOptimizer {
 public:
  RmsProp(const recipe::Optimizer& config, const std::vector<NamedParameter>& parameters, bool tf)
      : ForeachOptimizer(config, parameters, Decay::kL2, kinds_of(config, tf)),
        tf_(tf),
        centered_(config.flag("centered")),
        alpha_(config.number("alpha")),
        eps_(config.number("eps")),
        momentum_(config.number("momentum")) {}

 private:
  static std::vector<Kind> kinds_of(const recipe::Optimizer& config, bool tf) {
    std::vector<Kind> kinds{{"square_avg", tf ? 1.0 : 0.0}};
    if (config.number("momentum") > 0) kinds.push_back({"momentum_buffer"});
    if (config.flag("centered")) kinds.push_back({"grad_avg"});
    return kinds;
  }

  std::vector<at::Tensor> roots(const StepNumbers& numbers, const GroupLists& group) const {
    std::vector<at::Tensor> result;
    if (centered_) {
      const std::vector<at::Tensor>& average = group.states.back();
      move_average(numbers, average, alpha_, group.gradients);
      result = at::_foreach_addcmul(group.states[0], average, average, -1);
    } else {
      result = at::_foreach_mul(group.states[0], 1);
    }
    if (tf_) at::_foreach_add_(result, eps_);
    at::_foreach_sqrt_(result);
    if (!tf_) at::_foreach_add_(result, eps_);
    return result;
  }

  void update(const StepNumbers& numbers, GroupLists& group) override {
    move_squared_average(numbers, group.states[0], alpha_, group.gradients);
    std::vector<at::Tensor> change = at::_foreach_div(group.gradients, roots(numbers, group));
    if (momentum_ > 0) {
      const std::vector<at::Tensor>& buffer = group.states[1];
      if (tf_) multiply(change, numbers.lr);
      multiply(buffer, numbers.keep(momentum_));
      at::_foreach_add_(buffer, change);
      change = at::_foreach_mul(buffer, 1);
      multiply(change, tf_ ? numbers.taken : numbers.lr);
    } else {
      multiply(change, numbers.lr);
    }
    at::_foreach_sub_(group.parameters, change);
  }

  bool tf_, centered_;
  double alpha_, eps_, momentum_;
};

}  // namespace

std::unique_ptr<Optimizer> make_rmsprop(const recipe::Optimizer& config,
                                        std::vector<NamedParameter> parameters) {
  return std::make_unique<RmsProp>(config, parameters, /*tf=*/false);
}

std::unique_ptr<Optimizer> make_rmsprop_tf(const recipe::Optimizer& config,
                                           std::vector<NamedParameter> parameters) {
  return std::make_unique<RmsProp>(config, parameters, /*tf=*/true);
}

}  // namespace scaletrain::optim
