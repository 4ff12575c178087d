// Stochastic gradient descent with momentum, torch.optim.SGD's formula without dampening:
// v = momentum * v + g + decay * p; p -= lr * v, or with nesterov p -= lr * (g + decay * p +
// momentum * v).
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_sgd.h>

#include "lib/optim/optimizer.h"
#include "lib/optim/parameter_group.h"

namespace scaletrain::optim {
namespace {

class Sgd : public Optimizer {
 public:
  Sgd(const recipe::Optimizer& config, const std::vector<NamedParameter>& parameters)
      : momentum_(config.number("momentum")),
        nesterov_(config.flag("nesterov")),
        groups_(make_groups(config, parameters)) {
    for (const ParameterGroup& group : groups_) {
      velocities_.push_back(momentum_ > 0 ? group.make_state() : GroupState());
    }
  }

  using Optimizer::step;
  void step(double lr, const std::optional<at::Tensor>& found_inf) override {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      // PyTorch's first step copies the gradient into v. With v = 0 the general formula gives the
      // same, so that the first step after a resume needs no special case.
      at::_fused_sgd_(groups_[i].flat_parameters(), groups_[i].flat_gradients(),
                      velocities_[i].flat, groups_[i].weight_decay(), momentum_,
                      lr * groups_[i].lr_scale(),
                      /*dampening=*/0, nesterov_,
                      /*maximize=*/false, /*is_first_step=*/false, /*grad_scale=*/{}, found_inf);
    }
  }

  void set_weight_decay(double weight_decay) override {
    for (ParameterGroup& group : groups_) group.follow_weight_decay(weight_decay);
  }

  units::Shards state() override {
    units::Shards named;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      groups_[i].name_state("momentum_buffer", velocities_[i], named);
    }
    return named;
  }

 private:
  double momentum_;
  bool nesterov_;
  std::vector<ParameterGroup> groups_;
  std::vector<GroupState> velocities_;  // one per group; empty without momentum
};

}  // namespace

std::unique_ptr<Optimizer> make_sgd(const recipe::Optimizer& config,
                                    std::vector<NamedParameter> parameters) {
  return std::make_unique<Sgd>(config, parameters);
}

}  // namespace scaletrain::optim
