// How many processors and accelerators this node offers to us.
#pragma once

namespace scaletrain::launcher {

// CPUs that this process may run on and that its container pays for.
int count_cpus();

// NVIDIA GPUs that CUDA would show to this process (launcher/gpus.h).
int count_gpus();

}  // namespace scaletrain::launcher
