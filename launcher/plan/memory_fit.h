// Compares the memory of a rank with that of its device.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace scaletrain::launcher {

struct MemoryShare {
  std::string kind;  // "parameters", "gradients", ..., "reserve"
  double bytes = 0;
};

struct MemoryFit {
  std::vector<MemoryShare> shares;
  double capacity = 0;  // bytes of the device that a rank may use

  double total() const;
  double margin() const { return capacity - total(); }
  bool fits() const { return margin() >= 0; }
};

// Bytes beside tensors: on a GPU the CUDA context, the workspace of cuBLAS, the buffers of
// `groups` NCCL communicators and what the caching allocator loses between blocks of
// `temporary_bytes`; on a CPU the program itself.
double reserve_bytes(bool on_gpu, int groups, double temporary_bytes);

// Memory of this machine: that of /proc/meminfo in `root`, or the smallest limit of the cgroups
// that hold this process; 0 if it cannot be read.
double machine_memory_bytes(const std::filesystem::path& root = "/");

}  // namespace scaletrain::launcher
