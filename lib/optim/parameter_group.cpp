#include "lib/optim/parameter_group.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>

#include <map>
#include <tuple>
#include <utility>

#include "lib/core/error.h"

namespace scaletrain::optim {
namespace {

// The bytes of a dense tensor as one dimension.
at::Tensor flat_view(const at::Tensor& tensor) {
  return tensor.detach().as_strided({tensor.numel()}, {1});
}

// True if the parameter has the recipe's weight decay.
bool has_recipe_decay(const recipe::Optimizer& config, const NamedParameter& parameter) {
  if (parameter.weight_decay) return false;
  return config.decay_norm_and_bias || (parameter.decays && parameter.dimensions() > 1);
}

}  // namespace

at::Device device_of(const std::vector<NamedParameter>& parameters) {
  return parameters.empty() ? at::Device(at::kCPU) : parameters.front().tensor.device();
}

at::Tensor gradient_of(const at::Tensor& parameter, const std::string& name) {
  at::Tensor gradient = parameter.grad();
  if (gradient.defined()) return gradient;
  throw core::InternalError("optimizer", fmt::format("parameter {} has no gradient", name),
                            "every parameter of a model must take part in its forward");
}

void ParameterGroup::add(const NamedParameter& parameter) {
  parameters_.push_back(parameter);
  flat_parameters_.push_back(flat_view(parameter.tensor));
}

std::vector<at::Tensor> ParameterGroup::flat_gradients() const {
  std::vector<at::Tensor> gradients;
  gradients.reserve(parameters_.size());
  const at::AutoDispatchBelowADInplaceOrView no_graph;  // autograd would note every view
  for (const NamedParameter& parameter : parameters_) {
    at::Tensor gradient = gradient_of(parameter.tensor, parameter.name);
    if (gradient.strides() != parameter.tensor.strides()) {
      gradient = at::empty_like(parameter.tensor.detach()).copy_(gradient);
    }
    gradients.push_back(gradient.as_strided({gradient.numel()}, {1}));
  }
  return gradients;
}

GroupState ParameterGroup::make_state() const {
  GroupState state;
  for (const NamedParameter& parameter : parameters_) {
    state.tensors.push_back(at::zeros_like(parameter.tensor.detach()));
    state.flat.push_back(flat_view(state.tensors.back()));
  }
  return state;
}

void ParameterGroup::name_state(const char* kind, const GroupState& state,
                                units::Shards& named) const {
  for (std::size_t i = 0; i < state.tensors.size(); ++i) {
    const NamedParameter& parameter = parameters_[i];
    named.emplace(fmt::format("{}/{}", kind, parameter.name), parameter.state(state.tensors[i]));
  }
}

double weight_decay_of(const recipe::Optimizer& config, const NamedParameter& parameter) {
  if (has_recipe_decay(config, parameter)) return config.weight_decay;
  return parameter.weight_decay.value_or(0);
}

bool follows_weight_decay(const recipe::Optimizer& config, const NamedParameter& parameter) {
  return config.weight_decay_end && has_recipe_decay(config, parameter);
}

void require_whole(const std::string& pointer, const std::vector<NamedParameter>& parameters) {
  for (const NamedParameter& parameter : parameters) {
    if (parameter.tensor.sizes() == at::IntArrayRef(parameter.shape())) continue;
    throw core::RecipeError(
        pointer, fmt::format("needs full tensors, and {} is sharded over ranks", parameter.name),
        "use another optimizer, or a layout with full tensors");
  }
}

std::vector<ParameterGroup> make_groups(const recipe::Optimizer& config,
                                        const std::vector<NamedParameter>& parameters) {
  std::vector<ParameterGroup> groups;
  std::map<std::tuple<double, bool, double>, std::size_t> numbers;  // index of each group
  for (const NamedParameter& parameter : parameters) {
    const double decay = weight_decay_of(config, parameter);
    const bool follows = follows_weight_decay(config, parameter);
    const auto [found, is_new] =
        numbers.emplace(std::tuple{decay, follows, parameter.lr_scale}, groups.size());
    if (is_new) groups.emplace_back(decay, parameter.lr_scale, follows);
    groups[found->second].add(parameter);
  }
  return groups;
}

}  // namespace scaletrain::optim
