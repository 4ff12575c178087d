// Adam (Kingma and Ba, 2015, algorithm 1; weight decay is added to the gradient) and AdamW, where
// it is decoupled (Loshchilov and Hutter, Decoupled Weight Decay Regularization, 2019, algorithm
// 2): torch.optim.Adam's and AdamW's formulas.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/zeros.h>

#include "lib/optim/optimizer.h"
#include "lib/optim/parameter_group.h"

namespace scaletrain::optim {
namespace {

struct Moments {
  GroupState average;          // EMA of the gradient
  GroupState squared_average;  // EMA of its square
};

// at::_fused_adam_ and at::_fused_adamw_: parameters, gradients, averages, squared averages, their
// maxima, steps, lr, beta1, beta2, weight decay, eps, amsgrad, maximize, grad_scale, found_inf.
using Kernel = void (*)(at::TensorList, at::TensorList, at::TensorList, at::TensorList,
                        at::TensorList, at::TensorList, double, double, double, double, double,
                        bool, bool, const std::optional<at::Tensor>&,
                        const std::optional<at::Tensor>&);

class Adam : public Optimizer {
 public:
  Adam(const recipe::Optimizer& config, const std::vector<NamedParameter>& parameters,
       Kernel kernel)
      : kernel_(kernel),
        beta1_(config.number("beta1")),
        beta2_(config.number("beta2")),
        eps_(config.number("eps")),
        groups_(make_groups(config, parameters)) {
    for (const ParameterGroup& group : groups_) {
      moments_.push_back({.average = group.make_state(), .squared_average = group.make_state()});
    }
    const at::Device device = device_of(parameters);
    steps_ = at::zeros({}, at::TensorOptions(at::kFloat).device(device));
  }

  using Optimizer::step;
  void step(double lr, const std::optional<at::Tensor>& found_inf) override {
    const at::NoGradGuard no_grad;
    steps_.add_(1);
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      const std::vector<at::Tensor>& parameters = groups_[i].flat_parameters();
      // The kernel takes a step count for each parameter; all of them are equal.
      const std::vector<at::Tensor> steps(parameters.size(), steps_);
      kernel_(parameters, groups_[i].flat_gradients(), moments_[i].average.flat,
              moments_[i].squared_average.flat, /*max_exp_avg_sqs=*/{}, steps,
              lr * groups_[i].lr_scale(), beta1_, beta2_, groups_[i].weight_decay(), eps_,
              /*amsgrad=*/false, /*maximize=*/false,
              /*grad_scale=*/{}, found_inf);
    }
    if (found_inf) steps_.sub_(*found_inf);  // a step that was left out is not counted
  }

  void set_weight_decay(double weight_decay) override {
    for (ParameterGroup& group : groups_) group.follow_weight_decay(weight_decay);
  }

  units::Shards state() override {
    units::Shards named{{"step", units::full_shard(steps_)}};
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      groups_[i].name_state("exp_avg", moments_[i].average, named);
      groups_[i].name_state("exp_avg_sq", moments_[i].squared_average, named);
    }
    return named;
  }

 private:
  Kernel kernel_;
  double beta1_, beta2_, eps_;
  std::vector<ParameterGroup> groups_;
  std::vector<Moments> moments_;  // one per group
  at::Tensor steps_;              // number of updates so far, a 0-dim float for the kernel
};

}  // namespace

std::unique_ptr<Optimizer> make_adam(const recipe::Optimizer& config,
                                     std::vector<NamedParameter> parameters) {
  return std::make_unique<Adam>(config, parameters, Kernel{at::_fused_adam_});
}

std::unique_ptr<Optimizer> make_adamw(const recipe::Optimizer& config,
                                      std::vector<NamedParameter> parameters) {
  return std::make_unique<Adam>(config, parameters, Kernel{at::_fused_adamw_});
}

}  // namespace scaletrain::optim
