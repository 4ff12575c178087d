// Parameters that share a weight decay, as the lists that a fused kernel takes.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

#include "lib/optim/optimizer.h"

namespace scaletrain::optim {

class ParameterGroup {
 public:
  explicit ParameterGroup(double weight_decay) : weight_decay_(weight_decay) {}
  void add(const NamedParameter& parameter);

  bool empty() const { return parameters_.empty(); }
  double weight_decay() const { return weight_decay_; }
  const std::vector<at::Tensor>& parameters() const { return parameters_; }

  // The gradients, each in its parameter's memory layout: the kernels walk over the bytes of both
  // and do not look at strides. Throws core::InternalError naming a parameter without one.
  std::vector<at::Tensor> gradients() const;

  // One zero tensor for each parameter, in its layout.
  std::vector<at::Tensor> make_state() const;
  // Adds `state` to `named` under "KIND/PARAMETER".
  void name_state(const char* kind, const std::vector<at::Tensor>& state,
                  std::map<std::string, at::Tensor>& named) const;

 private:
  double weight_decay_;
  std::vector<std::string> names_;
  std::vector<at::Tensor> parameters_;
};

// The parameters with weight decay and those without; a group may be missing, never empty.
std::vector<ParameterGroup> split_by_decay(const recipe::Optimizer& config,
                                           const std::vector<NamedParameter>& parameters);

}  // namespace scaletrain::optim
