// How many processors and accelerators this node offers to us.
#pragma once

#include <optional>
#include <string>

namespace scaletrain::launcher {

// CPUs that this process may run on.
int count_cpus();

// NVIDIA GPUs that CUDA would show to this process; asks NVML, else /proc/driver/nvidia.
int count_gpus();

// What CUDA makes of CUDA_VISIBLE_DEVICES (nullopt: not set) on a machine with `present` devices:
// entries count up to the first that names no device.
int visible_gpus(const std::optional<std::string>& visible_devices, int present);

}  // namespace scaletrain::launcher
