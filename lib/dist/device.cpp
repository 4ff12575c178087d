#include "lib/dist/device.h"

#include <ATen/Context.h>
#include <ATen/core/CachingHostAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdlib>
#include <filesystem>

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/dist/cuda_library.h"

namespace scaletrain::dist {
namespace {

// Whether the NVIDIA driver is loaded; asks the kernel, since opening CUDA takes a good part of a
// second.
bool driver_present() {
  std::error_code ignored;
  return std::filesystem::exists("/dev/nvidiactl", ignored);
}

at::Device cuda_device(int count, int local_rank) {
  if (local_rank >= count) {
    throw core::UsageError(
        "/device",
        fmt::format("local rank {} needs a device of its own; CUDA shows {} on this node",
                    local_rank, count),
        count == 0 ? R"(use "device": "cpu", or check nvidia-smi and CUDA_VISIBLE_DEVICES)"
                   : fmt::format(R"(use --nproc {} or less, or "device": "cpu")", count));
  }
  const auto index = static_cast<c10::DeviceIndex>(local_rank);
  cuda_library().set_device(index);
  return {at::kCUDA, index};
}

at::Device automatic_device(int local_rank) {
  if (!driver_present()) return at::kCPU;
  std::string trouble = "CUDA shows none: check nvidia-smi and CUDA_VISIBLE_DEVICES";
  try {
    const int count = cuda_library().device_count();
    if (count > 0) return cuda_device(count, local_rank);
  } catch (const core::UsageError& error) {
    trouble = error.found();
  }
  core::warn("the machine has NVIDIA devices, but training uses the CPU: {}", trouble);
  return at::kCPU;
}

class PinnedPool : public core::BufferPool {
 public:
  core::Buffer take(std::size_t bytes) override {
    // LibTorch's allocator of pinned memory keeps freed blocks for reuse, as a pool should.
    auto owner = std::make_shared<c10::DataPtr>(at::getHostAllocator(at::kCUDA)->allocate(bytes));
    const std::span<std::byte> span(static_cast<std::byte*>(owner->get()), bytes);
    return {span, [owner](std::span<std::byte> /*bytes*/) { owner->clear(); }};
  }
};

}  // namespace

at::Device choose_device(const std::string& wanted, int local_rank) {
  if (wanted == "cpu") return at::kCPU;
  if (wanted == "cuda") return cuda_device(cuda_library().device_count(), local_rank);
  return automatic_device(local_rank);
}

// What torch.use_deterministic_algorithms and its notes on reproducibility ask for.
void make_deterministic() {
  constexpr int kKeep = 0;
  ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", kKeep);  // read when cuBLAS makes its first handle
  at::Context& context = at::globalContext();
  context.setDeterministicAlgorithms(true, /*warn_only=*/false);
  context.setDeterministicCuDNN(true);
  context.setBenchmarkCuDNN(false);
  context.setSDPUseMemEfficient(false);  // its backward adds in any order
}

std::string device_name(at::Device device) {
  return device.is_cuda() ? cuda_library().device_name(device.index()) : "cpu";
}

std::int64_t peak_memory_bytes(at::Device device) {
  if (!device.is_cuda()) {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
  }
  const auto stats = c10::getDeviceAllocator(device.type())->getDeviceStats(device.index());
  constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  return stats.allocated_bytes[kAll].peak;
}

std::unique_ptr<core::BufferPool> make_batch_pool(at::Device device) {
  if (device.is_cuda()) return std::make_unique<PinnedPool>();
  return core::make_host_pool();
}

}  // namespace scaletrain::dist
