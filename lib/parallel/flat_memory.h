// Frees and reallocates a tensor's memory while views of it stay.
#pragma once

#include <ATen/core/Tensor.h>

namespace scaletrain::parallel {

// Frees the memory of `whole` and of all its views. Their values must not be used before
// take_memory(), which allocates memory without initial values.
void give_memory_back(const at::Tensor& whole);
void take_memory(const at::Tensor& whole);

// A tensor of a smaller dtype on the memory of `whole`, whose values are lost.
at::Tensor same_memory_as(const at::Tensor& whole, at::ScalarType type);

}  // namespace scaletrain::parallel
