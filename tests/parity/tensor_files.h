// Tensors in and out of safetensors, for the programs that are compared with PyTorch.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

namespace scaletrain::parity {

using Tensors = std::map<std::string, at::Tensor>;

Tensors read_tensors(const std::string& path);
void write_tensors(const std::string& path, Tensors tensors);

}  // namespace scaletrain::parity
