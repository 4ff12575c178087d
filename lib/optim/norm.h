// The gradients' L2 norm.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace scaletrain::optim {

// Returns the sum of the squares of all elements of `gradients`, a 0-dim double on their device;
// only queues work on a device. Squares and sums are in double precision, so that sharding changes
// only the last bits; if several ranks have the same gradient, only one contributes it. On a CPU
// the result is the same for any number of threads.
at::Tensor squared_norm(const std::vector<at::Tensor>& gradients);

}  // namespace scaletrain::optim
