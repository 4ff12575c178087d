// The gradients' L2 norm.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace scaletrain::optim {

// Sum of the squares of all elements of `gradients`, a 0-dim double on their device; only queues
// work on a device. Each square and each addition is in doubles, so that how a gradient is cut
// among ranks changes nothing but the last bits of a double; where a gradient lies on several
// ranks, one of them gives it. On a CPU the result is the same for any number of threads.
at::Tensor squared_norm(const std::vector<at::Tensor>& gradients);

}  // namespace scaletrain::optim
