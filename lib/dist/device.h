// Chooses the device of a rank, and device-dependent functions.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "lib/core/buffer.h"

namespace scaletrain::dist {

// A rank among those of its node.
struct LocalRank {
  int rank = 0;
  int ranks = 1;
};

// Returns the device for a recipe's /device: "cpu"; "cuda", which becomes the current device;
// "auto": CUDA if the machine has NVIDIA devices. Throws core::UsageError if CUDA is requested and
// cannot be used, or if the node has fewer devices than ranks.
at::Device choose_device(const std::string& wanted, LocalRank local);

// Returns the index of the CUDA device for "cuda" or "auto" if CUDA shows `count` devices; nullopt:
// the CPU, only for "auto" without any device. Throws as choose_device() does.
std::optional<int> cuda_number(const std::string& wanted, int count, LocalRank local);

// Sets how LibTorch chooses CUDA kernels. `deterministic`: operations give the same bits in every
// run, and an operation without such a kernel throws; otherwise cuDNN benchmarks its kernels for
// each new shape. Call it before the first operation, while no other thread reads the environment.
void choose_kernels(bool deterministic);

// Returns 80 for compute capability 8.0 of a CUDA device; 0 for a CPU.
int compute_capability(at::Device device);

// "cpu", or the name that the driver gives the device.
std::string device_name(at::Device device);

// Returns the peak memory so far: tensors on a device, or the process's resident memory.
std::int64_t peak_memory_bytes(at::Device device);

// Releases memory that LibTorch caches for later tensors.
void release_cached_memory(at::Device device);

// Memory for batches that go to `device`: pinned for CUDA, ordinary for a CPU.
std::unique_ptr<core::BufferPool> make_batch_pool(at::Device device);

}  // namespace scaletrain::dist
