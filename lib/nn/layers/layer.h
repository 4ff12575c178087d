// Base of layers, which define the initial values of their parameters.
//
// C++ modules have no hooks, so a layer of our own is the place where a layout's exchanges, another
// number type or a split backward can stand without a model file knowing of them.
#pragma once

#include <ATen/core/Generator.h>
#include <torch/nn/module.h>

#include <string>

#include "lib/units/layer_cut.h"

namespace scaletrain::nn {

class Layer : public torch::nn::Module {
 public:
  // Fills `logical`, the whole of this layer's parameter `name` ("weight") as a plain fp32 tensor
  // on the CPU, as PyTorch's layer does, drawing from `generator` alone.
  virtual void initialise(const std::string& name, const at::Tensor& logical,
                          at::Generator generator) const = 0;

  // Its parameters were cut, so that this rank has a part of them. Throws core::InternalError for a
  // layer that has no place for that.
  virtual void cut_by(units::LayerCut cut);
};

}  // namespace scaletrain::nn
