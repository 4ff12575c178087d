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

// Returns the bytes that are not tensors. On a GPU: the CUDA context, cuBLAS's workspace, the
// buffers of `groups` NCCL communicators, and the fragmentation of the caching allocator for
// `temporary_bytes`. On a CPU: the program itself.
double reserve_bytes(bool on_gpu, int groups, double temporary_bytes);

// Memory of this machine: that of /proc/meminfo in `root`, or the smallest limit of the cgroups
// that hold this process; 0 if it cannot be read.
double machine_memory_bytes(const std::filesystem::path& root = "/");

}  // namespace scaletrain::launcher
