#include "lib/optim/parameter_group.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>

#include "lib/core/error.h"

namespace scaletrain::optim {
namespace {

// The bytes of a dense tensor as one dimension.
at::Tensor flat_view(const at::Tensor& tensor) {
  return tensor.detach().as_strided({tensor.numel()}, {1});
}

}  // namespace

void ParameterGroup::add(const NamedParameter& parameter) {
  names_.push_back(parameter.name);
  parameters_.push_back(parameter.tensor);
  flat_parameters_.push_back(flat_view(parameter.tensor));
}

std::vector<at::Tensor> ParameterGroup::flat_gradients() const {
  std::vector<at::Tensor> gradients;
  gradients.reserve(parameters_.size());
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    at::Tensor gradient = parameters_[i].grad();
    if (!gradient.defined()) {
      throw core::InternalError("optimizer", fmt::format("parameter {} has no gradient", names_[i]),
                                "every parameter of a model must take part in its forward");
    }
    if (gradient.strides() != parameters_[i].strides()) {
      gradient = at::empty_like(parameters_[i].detach()).copy_(gradient);
    }
    gradients.push_back(flat_view(gradient));
  }
  return gradients;
}

GroupState ParameterGroup::make_state() const {
  GroupState state;
  for (const at::Tensor& parameter : parameters_) {
    state.tensors.push_back(at::zeros_like(parameter.detach()));
    state.flat.push_back(flat_view(state.tensors.back()));
  }
  return state;
}

void ParameterGroup::name_state(const char* kind, const GroupState& state,
                                std::map<std::string, at::Tensor>& named) const {
  for (std::size_t i = 0; i < state.tensors.size(); ++i) {
    named.emplace(fmt::format("{}/{}", kind, names_[i]), state.tensors[i]);
  }
}

std::vector<ParameterGroup> make_groups(const recipe::Optimizer& config,
                                        const std::vector<NamedParameter>& parameters) {
  std::vector<ParameterGroup> groups;
  for (const bool of_decayed : {true, false}) {
    std::map<double, std::size_t> by_scale;  // group numbers
    for (const NamedParameter& parameter : parameters) {
      const bool decays =
          config.decay_norm_and_bias || (parameter.decays && parameter.dimensions() > 1);
      if (decays != of_decayed) continue;
      const auto [found, is_new] = by_scale.emplace(parameter.lr_scale, groups.size());
      if (is_new) groups.emplace_back(decays ? config.weight_decay : 0, parameter.lr_scale);
      groups[found->second].add(parameter);
    }
  }
  return groups;
}

}  // namespace scaletrain::optim
