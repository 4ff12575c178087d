#include "lib/optim/tensor_optimizer.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>

#include <utility>

#include "lib/optim/parameter_group.h"

namespace scaletrain::optim {

TensorOptimizer::TensorOptimizer(const recipe::Optimizer& config,
                                 const std::vector<NamedParameter>& parameters,
                                 const MakeStates& make_states) {
  const at::Device device = device_of(parameters);
  steps_ = at::zeros({}, at::TensorOptions(at::kDouble).device(device));
  for (const NamedParameter& parameter : parameters) {
    Entry& entry = entries_.emplace_back(Entry{.parameter = parameter,
                                               .states = {},
                                               .named = {},
                                               .weight_decay = weight_decay_of(config, parameter),
                                               .follows = follows_weight_decay(config, parameter)});
    for (const TensorState& state : make_states(parameter)) {
      entry.states.push_back(state.tensor);
      entry.named.emplace(fmt::format("{}/{}", state.kind, parameter.name),
                          state.is_whole ? units::full_shard(state.tensor, parameter.counts)
                                         : parameter.state(state.tensor));
    }
  }
}

void TensorOptimizer::step(double lr, const std::optional<at::Tensor>& found_inf) {
  ++tried_;
  if (!found_inf || !can_look_at(*found_inf)) {
    take_step(lr, found_inf);
  } else if (*found_inf->const_data_ptr<float>() == 0) {
    take_step(lr, std::nullopt);
  }
}

void TensorOptimizer::take_step(double lr, const std::optional<at::Tensor>& found_inf) {
  const at::NoGradGuard no_grad;
  const at::Tensor number = steps_ + 1;
  for (const Entry& entry : entries_) {
    const at::Tensor parameter = entry.parameter.tensor.detach();
    at::Tensor gradient = gradient_of(entry.parameter.tensor, entry.parameter.name);
    const TensorStep whole{.parameter = parameter,
                           .gradient = gradient,
                           .states = entry.states,
                           .number = number,
                           .tried = tried_,
                           .lr = lr * entry.parameter.lr_scale,
                           .weight_decay = entry.weight_decay,
                           .begin = entry.parameter.begin};
    if (update_at_once(whole)) continue;
    std::vector<at::Tensor> changed, kept;
    at::Tensor left_out;
    if (found_inf) {
      left_out = found_inf->ne(0);
      gradient = at::where(left_out, at::zeros_like(gradient), gradient);
      changed = entry.states;
      changed.push_back(parameter);
      for (const at::Tensor& tensor : changed) kept.push_back(tensor.clone());
    }
    update(whole);
    for (std::size_t i = 0; i < kept.size(); ++i) {
      changed[i].copy_(at::where(left_out, kept[i], changed[i]));
    }
  }
  steps_.add_(1);
  if (found_inf) steps_.sub_(*found_inf);
}

void TensorOptimizer::set_weight_decay(double weight_decay) {
  for (Entry& entry : entries_) {
    if (entry.follows) entry.weight_decay = weight_decay;
  }
}

units::Shards TensorOptimizer::state() {
  units::Shards named{{"step", units::full_shard(steps_)}};
  for (const Entry& entry : entries_) named.insert(entry.named.begin(), entry.named.end());
  return named;
}

}  // namespace scaletrain::optim
