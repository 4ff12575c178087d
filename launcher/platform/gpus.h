// The NVIDIA GPUs of this machine, and which of them CUDA_VISIBLE_DEVICES leaves.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace scaletrain::launcher {

struct Gpu {
  std::string name, uuid;           // "NVIDIA H200", "GPU-5ee1..."
  std::string pci;                  // "0000:dc:00.0", as in /sys
  std::int64_t memory_bytes = 0;    // 0: not known
  std::vector<std::string> migs{};  // "MIG-...", of its instances
};

struct Driver {
  std::string version;   // "580.82.07"
  int cuda_version = 0;  // 13000: the newest that it runs
  std::vector<Gpu> gpus;
};

// Asks the driver's library (NVML), opened at run time. nullopt where there is none or it refuses;
// `why`, where given, says which.
std::optional<Driver> ask_driver(std::string* why = nullptr);

// The entries of a list as CUDA_VISIBLE_DEVICES is one, without the blanks around them.
std::vector<std::string> device_entries(std::string_view list);

// The GPUs that such a list leaves, in its order: numbers, UUIDs or their beginnings, names of MIG
// instances ("MIG-..."; the GPU is the one that has it). As CUDA does, entries count up to the
// first that names no device.
std::vector<Gpu> visible_of(const std::vector<Gpu>& gpus, const std::optional<std::string>& list);

// GPUs of this machine that CUDA_VISIBLE_DEVICES permits, as CUDA would show them; without the
// driver's library the ones in /proc/driver/nvidia/gpus, with their UUIDs and PCI addresses alone.
std::vector<Gpu> visible_gpus_here();
int count_gpus();

}  // namespace scaletrain::launcher
