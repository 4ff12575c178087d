#include "lib/optim/foreach_optimizer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_sqrt.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <utility>

namespace scaletrain::optim {

ForeachOptimizer::ForeachOptimizer(const recipe::Optimizer& config,
                                   const std::vector<NamedParameter>& parameters, Decay decay,
                                   std::vector<Kind> kinds)
    : decay_(decay), kinds_(std::move(kinds)), groups_(make_groups(config, parameters)) {
  const at::Device device = device_of(parameters);
  number_options_ = at::TensorOptions(at::kDouble).device(device);
  for (const ParameterGroup& group : groups_) {
    std::vector<GroupState>& states = states_.emplace_back();
    for (const Kind& kind : kinds_) {
      states.push_back(group.make_state());
      for (const at::Tensor& tensor : states.back().flat) tensor.fill_(kind.initial);
    }
  }
  steps_ = add_number("step", 0);
}

at::Tensor ForeachOptimizer::add_number(const std::string& name, double initial) {
  return numbers_.emplace(name, at::full({}, initial, number_options_)).first->second;
}

void ForeachOptimizer::step(double lr, const std::optional<at::Tensor>& found_inf) {
  const at::NoGradGuard no_grad;
  StepNumbers numbers;
  numbers.taken = at::ones({}, number_options_);
  if (found_inf) numbers.taken.sub_(*found_inf);
  numbers.lr = numbers.taken * lr;
  numbers.step = steps_ + 1;
  begin(numbers);
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const double decay = groups_[i].weight_decay();
    GroupLists lists{.parameters = groups_[i].flat_parameters(),
                     .gradients = groups_[i].flat_gradients(),
                     .states = {},
                     .weight_decay = decay};
    for (const GroupState& state : states_[i]) lists.states.push_back(state.flat);
    if (decay != 0 && decay_ == Decay::kL2) {
      lists.gradients = at::_foreach_add(lists.gradients, lists.parameters, decay);
    }
    if (found_inf) {
      for (at::Tensor& gradient : lists.gradients) {
        gradient = at::where(found_inf->ne(0), at::zeros_like(gradient), gradient);
      }
    }
    StepNumbers of_group = numbers;
    of_group.lr = numbers.lr * groups_[i].lr_scale();
    if (decay != 0 && decay_ == Decay::kDecoupled) {
      multiply(lists.parameters, 1 - of_group.lr * decay);
    }
    update(of_group, lists);
  }
  steps_.add_(numbers.taken);
}

void ForeachOptimizer::set_weight_decay(double weight_decay) {
  for (ParameterGroup& group : groups_) group.follow_weight_decay(weight_decay);
}

units::Shards ForeachOptimizer::state() {
  units::Shards named = units::full_shards(numbers_);
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
      groups_[i].name_state(kinds_[kind].name, states_[i][kind], named);
    }
  }
  return named;
}

void multiply(const std::vector<at::Tensor>& list, const at::Tensor& factor) {
  at::_foreach_mul_(list, factor.to(list.front().scalar_type()));
}

void move_average(const StepNumbers& numbers, const std::vector<at::Tensor>& averages, double share,
                  const std::vector<at::Tensor>& values) {
  multiply(averages, numbers.keep(share));
  at::_foreach_add_(averages, values, 1 - share);
}

void move_squared_average(const StepNumbers& numbers, const std::vector<at::Tensor>& averages,
                          double share, const std::vector<at::Tensor>& values) {
  multiply(averages, numbers.keep(share));
  at::_foreach_addcmul_(averages, values, values, 1 - share);
}

at::Tensor trust_ratio(const at::Tensor& parameter_norm, const at::Tensor& change_norm,
                       const at::Tensor& ratio) {
  return at::where(parameter_norm.gt(0).logical_and(change_norm.gt(0)), ratio,
                   at::ones_like(ratio));
}

std::vector<at::Tensor> denominators(const std::vector<at::Tensor>& squares,
                                     const at::Tensor& correction, double eps) {
  std::vector<at::Tensor> result = at::_foreach_sqrt(squares);
  multiply(result, correction.rsqrt());
  at::_foreach_add_(result, eps);
  return result;
}

}  // namespace scaletrain::optim
