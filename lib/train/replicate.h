// The same tensors on all ranks: those of one of them.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "lib/dist/group.h"

namespace scaletrain::train {

// Copies the values of the rank `root` into `tensors` on the other ranks. The same shapes and
// dtypes in the same order on every rank; few large messages, whatever the number of tensors.
void replicate(dist::Group& group, const std::vector<at::Tensor>& tensors, const char* name,
               int root = 0);

}  // namespace scaletrain::train
