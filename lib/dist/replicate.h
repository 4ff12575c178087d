// Broadcasts the tensors of one rank to all ranks.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "lib/dist/group.h"

namespace scaletrain::dist {

// Copies the values of the rank `root` into `tensors` on the other ranks. Shapes, dtypes and order
// must be equal on every rank. Sends few large messages, however many tensors there are.
void replicate(Group& group, const std::vector<at::Tensor>& tensors, const char* name,
               int root = 0);

}  // namespace scaletrain::dist
