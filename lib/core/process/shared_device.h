// Several ranks on one device, for tests on a machine with one.
#pragma once

namespace scaletrain::core {

// True if the ranks of a node share its devices: the variable SCALETRAIN_SHARE_DEVICE is 1. NCCL
// refuses that, so their group is Gloo's.
bool shares_device();

}  // namespace scaletrain::core
