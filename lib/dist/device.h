// The device of a rank, and what differs with it.
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

// The device for a recipe's /device: "cpu"; "cuda", made current; "auto": CUDA where the machine
// has NVIDIA devices. Throws core::UsageError where CUDA is asked for and cannot be used, or where
// the node has devices, but fewer than ranks.
at::Device choose_device(const std::string& wanted, LocalRank local);

// The number of the CUDA device for "cuda" or "auto" where CUDA shows `count` of them; nullopt: the
// CPU, which only "auto" may have, and only where there is none. Throws as choose_device does.
std::optional<int> cuda_number(const std::string& wanted, int count, LocalRank local);

// How LibTorch chooses among its kernels for CUDA devices from now on. `deterministic`: operations
// give the same bits in every run, and one that has no such kernel throws; otherwise cuDNN tries
// its kernels for each new shape and takes the fastest. Before the first of them, while no other
// thread reads the environment.
void choose_kernels(bool deterministic);

// 80 for a CUDA device's compute capability 8.0; 0 for a CPU.
int compute_capability(at::Device device);

// "cpu", or the name that the driver gives the device.
std::string device_name(at::Device device);

// The most memory that was in use so far: tensors of a device, or the process's resident memory.
std::int64_t peak_memory_bytes(at::Device device);

// Gives memory that LibTorch keeps for tensors to come back to the device.
void release_cached_memory(at::Device device);

// Memory for batches that go to `device`: pinned for CUDA, ordinary for a CPU.
std::unique_ptr<core::BufferPool> make_batch_pool(at::Device device);

}  // namespace scaletrain::dist
