// Sharpness-aware minimisation (Foret et al., Sharpness-Aware Minimization for Efficiently
// Improving Generalization, 2021, equation 2; adaptive: Kwon et al., ASAM, 2021, equation 7): each
// step uses the gradient at the point, within a radius of the weights, where the loss is
// approximately highest.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "lib/recipe/sections/sam.h"
#include "lib/units/named_parameter.h"

namespace scaletrain::optim {

// Each step calls, in this order: backward at the weights, weigh(), ascend(), backward, descend().
// All of them only queue work.
class Sam {
 public:
  Sam(const recipe::Sam& config, const std::vector<units::NamedParameter>& parameters);

  // If adaptive, multiplies each element's gradient by the magnitude of its weight; otherwise does
  // nothing.
  void weigh();
  // Moves the weights by rho along the gradients, whose L2 norm over the whole model is `norm`.
  void ascend(const at::Tensor& norm);
  // Restores the weights from before ascend(), bit for bit.
  void descend();

 private:
  std::vector<at::Tensor> gradients() const;

  recipe::Sam config_;
  std::vector<at::Tensor> parameters_, kept_;
};

}  // namespace scaletrain::optim
