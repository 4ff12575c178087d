// Memory of a tensor that comes and goes while views of it stay.
#pragma once

#include <ATen/core/Tensor.h>

namespace scaletrain::parallel {

// Gives the memory of `whole`, and so of all its views, back; nobody may use their values until
// take_memory(), after which they may be anything.
void give_memory_back(const at::Tensor& whole);
void take_memory(const at::Tensor& whole);

// The memory of `whole`, whose elements are shorter ones of another type from here on.
at::Tensor same_memory_as(const at::Tensor& whole, at::ScalarType type);

}  // namespace scaletrain::parallel
