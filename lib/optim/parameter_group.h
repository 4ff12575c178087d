// Parameters that share a weight decay and a learning rate, as the lists that a fused kernel takes.
//
// The kernels get one-dimensional views: element by element they need no shape, and ATen's AdamW
// is slower on channels-last tensors than on flat ones (docs/lab/performance.md).
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

#include "lib/optim/optimizer.h"

namespace scaletrain::optim {

// Theirs; the CPU where there are none.
at::Device device_of(const std::vector<NamedParameter>& parameters);

// Throws core::InternalError naming the parameter where it has none.
at::Tensor gradient_of(const at::Tensor& parameter, const std::string& name);

// The state of one kind for each parameter of a group, and the same bytes as a kernel takes them.
struct GroupState {
  std::vector<at::Tensor> tensors, flat;
};

class ParameterGroup {
 public:
  // `follows`: its weight decay is what the optimizer sets.
  ParameterGroup(double weight_decay, double lr_scale, bool follows)
      : weight_decay_(weight_decay), lr_scale_(lr_scale), follows_(follows) {}
  void add(const NamedParameter& parameter);

  double weight_decay() const { return weight_decay_; }
  void follow_weight_decay(double weight_decay) {
    if (follows_) weight_decay_ = weight_decay;
  }
  double lr_scale() const { return lr_scale_; }  // its learning rate over the optimizer's
  const std::vector<at::Tensor>& flat_parameters() const { return flat_parameters_; }

  // The gradients, each in its parameter's memory layout. Throws core::InternalError naming a
  // parameter without one.
  std::vector<at::Tensor> flat_gradients() const;

  // One zero tensor for each parameter, in its layout.
  GroupState make_state() const;
  // Adds `state` to `named` under "KIND/PARAMETER".
  void name_state(const char* kind, const GroupState& state,
                  std::map<std::string, at::Tensor>& named) const;

 private:
  double weight_decay_, lr_scale_;
  bool follows_;
  std::vector<std::string> names_;
  std::vector<at::Tensor> parameters_, flat_parameters_;
};

// Its own where it has one; none where it is a norm or a bias, or the model wants none on it,
// unless the recipe's decay_norm_and_bias says otherwise; the recipe's for all others.
double weight_decay_of(const recipe::Optimizer& config, const NamedParameter& parameter);

// True if the parameter has the recipe's weight decay and the recipe changes that over time.
bool follows_weight_decay(const recipe::Optimizer& config, const NamedParameter& parameter);

// Throws core::RecipeError at `pointer` where this rank owns nothing but a piece of a tensor.
void require_whole(const std::string& pointer, const std::vector<NamedParameter>& parameters);

// The parameters by weight decay, by whether that changes, and by learning rate; none is empty.
std::vector<ParameterGroup> make_groups(const recipe::Optimizer& config,
                                        const std::vector<NamedParameter>& parameters);

}  // namespace scaletrain::optim
