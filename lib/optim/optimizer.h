// Optimizers over ATen's fused kernels: one pass over parameters, gradients and state.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/recipe/recipe.h"
#include "lib/units/named_parameter.h"

namespace scaletrain::optim {

// Parameters whose logical tensor has at most one dimension (norms and biases) get no weight decay,
// whatever they say, unless the recipe's decay_norm_and_bias puts every parameter in.
using units::NamedParameter;

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // One update with the gradients as they are, at learning rate `lr` times each parameter's
  // lr_scale. `found_inf`, a 0-dim float on
  // the parameters' device, is 1 where a gradient is not finite: then parameters and state stay as
  // they are, bit for bit, which the kernels see for themselves; otherwise it is 0. Throws
  // core::InternalError naming a parameter without a gradient.
  virtual void step(double lr, const std::optional<at::Tensor>& found_inf) = 0;
  void step(double lr) { step(lr, std::nullopt); }

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
