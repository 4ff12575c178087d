// Initial distributions of layers, as in PyTorch.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace scaletrain::nn {

// Uniform within 1 / sqrt(inputs) of zero, where `inputs` is the fan-in of an output: the default
// for weights and biases of PyTorch's linear and convolution layers.
void initialise_by_inputs(const at::Tensor& parameter, std::int64_t inputs,
                          at::Generator generator);

// Normal with the deviation sqrt(2 / (outputs * kernel size)): He et al., Delving Deep into
// Rectifiers, 2015, equation 14. weight [outputs, inputs, height, width].
void initialise_by_outputs(const at::Tensor& weight, at::Generator generator);

}  // namespace scaletrain::nn
