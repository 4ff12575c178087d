// Models by name. A model is single-device code: it never sees rank, precision or optimizer.
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>

#include "lib/recipe/recipe.h"

namespace scaletrain::nn {

class Model : public torch::nn::Module {
 public:
  // input [batch, 3, image_size, image_size] float, normalised -> logits [batch, num_classes].
  virtual torch::Tensor forward(const torch::Tensor& input) = 0;

  // Whether weight decay is for the parameter of this name (lib/optim/optimizer.h).
  virtual bool decays(const std::string& /*name*/) const { return true; }
};

// Builds and initialises the recipe's model on the CPU; the same `seed` gives the same parameters.
// `image_size` is /data/image_size.
std::shared_ptr<Model> make_model(const recipe::Model& model, std::int64_t image_size,
                                  std::uint64_t seed);

}  // namespace scaletrain::nn
