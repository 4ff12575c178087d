// Calls back when autograd has a parameter's gradient.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace scaletrain::parallel {

// In each backward; a tensor has one such hook.
void on_gradient(const at::Tensor& parameter, std::function<void(const at::Tensor&)> arrived);

}  // namespace scaletrain::parallel
