// Optimizers over ATen's fused kernels: one pass over parameters, gradients and state.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/recipe/recipe.h"

namespace scaletrain::optim {

struct NamedParameter {
  std::string name;
  at::Tensor tensor;  // its .grad() holds the gradient
  // Whether the model wants weight decay on it. Norms and biases (at most one dimension) are left
  // out in any case, unless the recipe's decay_norm_and_bias puts every parameter in.
  bool decays = true;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // One update with the gradients as they are, at learning rate `lr`. Throws core::InternalError
  // naming a parameter without a gradient.
  virtual void step(double lr) = 0;

  // State tensors by name, "exp_avg/PARAMETER" and so on; the optimizer's own tensors, so that
  // copying into them restores the state. Complete before the first step.
  virtual std::map<std::string, at::Tensor> state() = 0;
};

std::unique_ptr<Optimizer> make_optimizer(const recipe::Optimizer& config,
                                          std::vector<NamedParameter> parameters);

// The learning rate of the recipe for a global batch: lr, or lr * global / lr_base_batch (Goyal et
// al., Accurate, Large Minibatch SGD, 2017, section 2.1).
double scaled_lr(const recipe::Optimizer& config, std::int64_t global_batch);

}  // namespace scaletrain::optim
