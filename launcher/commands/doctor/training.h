// Checks of what trains: devices and driver, scaletrain-worker with its LibTorch, and ranks that
// talk to each other on this machine.
#pragma once

#include <optional>
#include <string>

#include "launcher/commands/doctor/finding.h"
#include "launcher/platform/gpus.h"

namespace scaletrain::launcher {

// The devices and the driver. `driver`: as ask_driver found it, `why` where it found none;
// `nodes`: whether the kernel has NVIDIA devices; `visible`: CUDA_VISIBLE_DEVICES.
Findings check_devices(const std::optional<Driver>& driver, const std::string& why, bool nodes,
                       const std::optional<std::string>& visible, int cpus);

// scaletrain-worker starts with its LibTorch; where `gpus` > 0 it can use that many.
Finding check_worker(const std::string& worker, int gpus);

// `ranks` workers sum a tensor over Gloo ("cpu") or NCCL ("cuda"), started by `launcher`.
Finding check_all_reduce(const std::string& launcher, const std::string& worker,
                         const std::string& device, int ranks);

// Runs all checks of this file on this machine.
Findings check_training();

}  // namespace scaletrain::launcher
