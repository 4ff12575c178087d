// Base of layers, which define the initial values of their parameters.
//
// C++ modules have no hooks, so communication of a parallel layout, another dtype or a split
// backward is added in a layer, without changes in model files.
#pragma once

#include <ATen/core/Generator.h>
#include <torch/nn/module.h>

#include <string>

#include "lib/units/layer_cut.h"

namespace scaletrain::nn {

class Layer : public torch::nn::Module {
 public:
  // Fills `logical`, the full parameter `name` ("weight") of this layer as an fp32 tensor on the
  // CPU, as PyTorch's layer does, drawing only from `generator`.
  virtual void initialise(const std::string& name, const at::Tensor& logical,
                          at::Generator generator) const = 0;

  // Call after the layer's parameters were replaced by local shards. Throws core::InternalError for
  // a layer that does not support sharding.
  virtual void cut_by(units::LayerCut cut);
};

}  // namespace scaletrain::nn
