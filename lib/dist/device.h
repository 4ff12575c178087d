// The device of a rank, and what differs with it.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <string>

#include "lib/core/buffer.h"

namespace scaletrain::dist {

// The device for a recipe's /device on the rank number `local_rank` of its node: "cpu"; "cuda",
// made current; "auto": CUDA where the machine has NVIDIA devices. Throws core::UsageError where
// CUDA is asked for and cannot be used, or where the node has fewer devices than ranks.
at::Device choose_device(const std::string& wanted, int local_rank);

// From now on operations on CUDA devices give the same bits in every run; one that LibTorch has no
// such kernel for throws. Before the first of them, while no other thread reads the environment.
void make_deterministic();

// "cpu", or the name that the driver gives the device.
std::string device_name(at::Device device);

// The most memory that was in use so far: tensors of a device, or the process's resident memory.
std::int64_t peak_memory_bytes(at::Device device);

// Memory for batches that go to `device`: pinned for CUDA, ordinary for a CPU.
std::unique_ptr<core::BufferPool> make_batch_pool(at::Device device);

}  // namespace scaletrain::dist
