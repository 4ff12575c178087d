// The same tensors on all ranks: rank 0's.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "lib/dist/group.h"

namespace scaletrain::train {

// Copies rank 0's values into `tensors` on the other ranks. The same shapes and dtypes in the same
// order on every rank; few large messages, whatever the number of tensors.
void replicate(dist::Group& group, const std::vector<at::Tensor>& tensors, const char* name);

}  // namespace scaletrain::train
