// Checks of the training set-up: devices and driver, scaletrain-worker with its LibTorch, and
// communication between ranks on this machine.
#pragma once

#include <optional>
#include <string>

#include "launcher/commands/doctor/finding.h"
#include "launcher/platform/gpus.h"

namespace scaletrain::launcher {

// Checks the devices and the driver. `driver`: result of ask_driver(), `why`: its reason if there
// is none; `nodes`: true if the kernel has NVIDIA devices; `visible`: CUDA_VISIBLE_DEVICES.
Findings check_devices(const std::optional<Driver>& driver, const std::string& why, bool nodes,
                       const std::optional<std::string>& visible, int cpus);

// Checks that scaletrain-worker starts with its LibTorch and, if `gpus` > 0, can use that many
// GPUs.
Finding check_worker(const std::string& worker, int gpus);

// Runs an all-reduce of `ranks` workers over Gloo ("cpu") or NCCL ("cuda"), started by `launcher`.
Finding check_all_reduce(const std::string& launcher, const std::string& worker,
                         const std::string& device, int ranks);

// Runs all checks of this file on this machine.
Findings check_training();

}  // namespace scaletrain::launcher
