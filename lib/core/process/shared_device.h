// Several ranks on one GPU, for tests on a machine with a single one.
#pragma once

namespace scaletrain::core {

// True if the ranks of a node share its devices (SCALETRAIN_SHARE_DEVICE=1). They use Gloo, as NCCL
// does not support this.
bool shares_device();

}  // namespace scaletrain::core
