// The NVIDIA GPUs of this machine, and the selection by CUDA_VISIBLE_DEVICES.
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
  std::vector<std::string> migs{};  // names of its MIG instances, "MIG-..."
};

struct Driver {
  std::string version;   // "580.82.07"
  int cuda_version = 0;  // newest supported version: 13000
  std::vector<Gpu> gpus;
};

// Queries the driver's library (NVML), loaded at run time. Returns nullopt if it is missing or
// refuses; `why`, if given, receives the reason.
std::optional<Driver> ask_driver(std::string* why = nullptr);

// Returns the entries of a list in the form of CUDA_VISIBLE_DEVICES, without blanks around them.
std::vector<std::string> device_entries(std::string_view list);

// Returns the GPUs that such a list selects, in its order: numbers, UUIDs or their prefixes, names
// of MIG instances ("MIG-..."; selects their GPU). As in CUDA, entries count up to the first
// invalid one.
std::vector<Gpu> visible_of(const std::vector<Gpu>& gpus, const std::optional<std::string>& list);

// Returns the GPUs of this machine that CUDA_VISIBLE_DEVICES permits, in CUDA's order. Without the
// driver's library these are the ones in /proc/driver/nvidia/gpus, with only their UUIDs and PCI
// addresses.
std::vector<Gpu> visible_gpus_here();
int count_gpus();

}  // namespace scaletrain::launcher
