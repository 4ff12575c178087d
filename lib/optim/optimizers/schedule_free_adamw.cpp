// Schedule-free AdamW (Defazio et al., The Road Less Scheduled, 2024, algorithm 1). The paper has
// three sequences. The parameters hold y, at which gradients are computed. The state holds z - y,
// where z takes the optimizer steps, so that the initial weights are not needed. The third one,
//   x = y - (z - y) (1 - beta1) / beta1,
// is the average of z, which is evaluated and saved.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>

#include <utility>

#include "lib/optim/foreach_optimizer.h"

namespace scaletrain::optim {
namespace {

constexpr const char* kOffset = "z_minus_y";

class ScheduleFreeAdamW : public ForeachOptimizer {
 public:
  ScheduleFreeAdamW(const recipe::Optimizer& config, std::vector<NamedParameter> parameters)
      : ForeachOptimizer(config, parameters, Decay::kOwn, {{"exp_avg_sq"}, {kOffset}}),
        beta1_(config.number("beta1")),
        beta2_(config.number("beta2")),
        eps_(config.number("eps")),
        weight_lr_power_(config.number("weight_lr_power")),
        weight_sum_(add_number("weight_sum", 0)),
        parameters_(std::move(parameters)) {}

  // With y, which x and z give but for the last bits.
  units::Shards state() override {
    units::Shards named = ForeachOptimizer::state();
    for (const NamedParameter& parameter : parameters_) {
      named.emplace("y/" + parameter.name, parameter.state());
    }
    return named;
  }

  std::map<std::string, at::Tensor> evaluation_weights() override {
    const at::NoGradGuard no_grad;
    const units::Shards states = ForeachOptimizer::state();
    std::map<std::string, at::Tensor> averages;
    for (const NamedParameter& parameter : parameters_) {
      const at::Tensor& offset = states.at(fmt::format("{}/{}", kOffset, parameter.name)).tensor;
      averages.emplace(parameter.name,
                       parameter.tensor.detach() - offset * ((1 - beta1_) / beta1_));
    }
    return averages;
  }
  bool has_evaluation_weights() const override { return true; }

 private:
  void begin(const StepNumbers& numbers) override {
    const at::Tensor weight = at::pow(numbers.lr, weight_lr_power_) * numbers.taken;
    weight_sum_.add_(weight);
    share_ = at::where(weight_sum_.gt(0), weight / weight_sum_, at::zeros_like(weight));
  }

  void update(const StepNumbers& numbers, GroupLists& group) override {
    const std::vector<at::Tensor>&squares = group.states[0], &offsets = group.states[1];
    move_squared_average(numbers, squares, beta2_, group.gradients);
    std::vector<at::Tensor> change =
        at::_foreach_div(group.gradients, denominators(squares, numbers.correction(beta2_), eps_));
    if (group.weight_decay != 0) at::_foreach_add_(change, group.parameters, group.weight_decay);
    multiply(change, -numbers.lr);
    // z' = z + change, x' = x + share (z' - x) and y' = x' + (1 - beta1) (z' - x'), written for y
    // and z - y.
    const std::vector<at::Tensor> pull = at::_foreach_mul(offsets, 1);
    multiply(pull, share_);
    at::_foreach_add_(group.parameters, pull);
    at::_foreach_add_(offsets, change, beta1_);
    multiply(offsets, 1 - share_);
    multiply(change, 1 - beta1_ * (1 - share_));
    at::_foreach_add_(group.parameters, change);
  }

  double beta1_, beta2_, eps_, weight_lr_power_;
  at::Tensor weight_sum_;  // sum over the steps so far
  at::Tensor share_;       // this step's share of the average
  std::vector<NamedParameter> parameters_;
};

}  // namespace

std::unique_ptr<Optimizer> make_schedule_free_adamw(const recipe::Optimizer& config,
                                                    std::vector<NamedParameter> parameters) {
  return std::make_unique<ScheduleFreeAdamW>(config, std::move(parameters));
}

}  // namespace scaletrain::optim
