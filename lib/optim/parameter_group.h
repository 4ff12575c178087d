// Parameters with the same weight decay and learning rate, as lists for a fused kernel.
//
// Kernels get one-dimensional views: elementwise updates need no shape, and ATen's AdamW is slower
// on channels-last tensors than on flat ones (docs/lab/performance.md).
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "lib/optim/optimizer.h"

namespace scaletrain::optim {

// Returns the device of the parameters; the CPU if there are none.
at::Device device_of(const std::vector<NamedParameter>& parameters);

// Returns the gradient; throws core::InternalError naming the parameter if it has none.
at::Tensor gradient_of(const at::Tensor& parameter, const std::string& name);

// State of one kind for each parameter of a group, and flat views of it for kernels.
struct GroupState {
  std::vector<at::Tensor> tensors, flat;
};

class ParameterGroup {
 public:
  // `follows`: Optimizer::set_weight_decay() changes its weight decay.
  ParameterGroup(double weight_decay, double lr_scale, bool follows)
      : weight_decay_(weight_decay), lr_scale_(lr_scale), follows_(follows) {}
  void add(const NamedParameter& parameter);

  double weight_decay() const { return weight_decay_; }
  void follow_weight_decay(double weight_decay) {
    if (follows_) weight_decay_ = weight_decay;
  }
  double lr_scale() const { return lr_scale_; }  // factor of the optimizer's learning rate
  const std::vector<at::Tensor>& flat_parameters() const { return flat_parameters_; }

  // Returns the gradients, each in its parameter's memory layout. Throws core::InternalError naming
  // a parameter without one.
  std::vector<at::Tensor> flat_gradients() const;

  // Returns a zero tensor for each parameter, in its layout.
  GroupState make_state() const;
  // Adds `state` to `named` under "KIND/PARAMETER".
  void name_state(const char* kind, const GroupState& state, units::Shards& named) const;

 private:
  double weight_decay_, lr_scale_;
  bool follows_;
  std::vector<NamedParameter> parameters_;
  std::vector<at::Tensor> flat_parameters_;
};

// Returns the weight decay of a parameter: its own if it has one; 0 for norms, biases and
// parameters that the model exempts, unless decay_norm_and_bias is set; otherwise the recipe's.
double weight_decay_of(const recipe::Optimizer& config, const NamedParameter& parameter);

// True if the parameter has the recipe's weight decay and the recipe changes that over time.
bool follows_weight_decay(const recipe::Optimizer& config, const NamedParameter& parameter);

// Throws core::RecipeError at `pointer` if this rank owns only a piece of a tensor.
void require_whole(const std::string& pointer, const std::vector<NamedParameter>& parameters);

// Groups the parameters by weight decay, by whether that changes, and by learning rate; no group is
// empty.
std::vector<ParameterGroup> make_groups(const recipe::Optimizer& config,
                                        const std::vector<NamedParameter>& parameters);

}  // namespace scaletrain::optim
