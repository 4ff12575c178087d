// Calls back when autograd has a parameter's gradient.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace scaletrain::parallel {

// Calls `arrived` in each backward; a tensor has at most one such hook.
void on_gradient(const at::Tensor& parameter, std::function<void(const at::Tensor&)> arrived);

}  // namespace scaletrain::parallel
