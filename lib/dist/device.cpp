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
#include "lib/core/process/shared_device.h"
#include "lib/dist/cuda_library.h"

namespace scaletrain::dist {
namespace {

// True if the NVIDIA driver is loaded. Checks with the kernel, since initialising CUDA takes a good
// part of a second.
bool driver_present() {
  std::error_code ignored;
  return std::filesystem::exists("/dev/nvidiactl", ignored);
}

// Returns the number of CUDA devices; for "auto" 0, with a warning, if CUDA cannot be used.
int count_devices(bool automatic) {
  if (!automatic) return cuda_library().device_count();
  if (!driver_present()) return 0;
  std::string trouble = "CUDA shows none: check nvidia-smi and CUDA_VISIBLE_DEVICES";
  try {
    if (const int count = cuda_library().device_count(); count > 0) return count;
  } catch (const core::UsageError& error) {
    trouble = error.found();
  }
  core::warn("the machine has NVIDIA devices, but training uses the CPU: {}", trouble);
  return 0;
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

at::Device choose_device(const std::string& wanted, LocalRank local) {
  if (wanted == "cpu") return at::kCPU;
  const std::optional<int> number = cuda_number(wanted, count_devices(wanted == "auto"), local);
  if (!number) return at::kCPU;
  const auto index = static_cast<c10::DeviceIndex>(*number);
  cuda_library().set_device(index);
  at::globalContext().lazyInitDevice(at::kCUDA);  // its allocator answers from now on
  // lib/dist/collective_watch.h aborts and reports; LibTorch's own watch would end the process.
  constexpr int kReplace = 1;
  ::setenv("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0", kReplace);
  return {at::kCUDA, index};
}

std::optional<int> cuda_number(const std::string& wanted, int count, LocalRank local) {
  if (local.rank < count) return local.rank;
  if (count > 0 && core::shares_device()) return local.rank % count;
  if (wanted == "auto" && count == 0) return std::nullopt;
  throw core::UsageError(
      "/device",
      fmt::format("local rank {} of {} needs a device of its own; CUDA shows {} on this node",
                  local.rank, local.ranks, count),
      count == 0 ? R"(use "device": "cpu", or check nvidia-smi and CUDA_VISIBLE_DEVICES)"
                 : fmt::format(R"(use --nproc {} or less, or "device": "cpu")", count));
}

// Applies the settings of torch.use_deterministic_algorithms and PyTorch's notes on
// reproducibility. Memory that is written before it is read is not filled.
void choose_kernels(bool deterministic) {
  at::Context& context = at::globalContext();
  context.setBenchmarkCuDNN(!deterministic);
  if (!deterministic) return;
  constexpr int kKeep = 0;
  ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", kKeep);  // read when cuBLAS makes its first handle
  context.setDeterministicAlgorithms(true, /*warn_only=*/false);
  context.setDeterministicFillUninitializedMemory(false);
  context.setDeterministicCuDNN(true);
  context.setSDPUseMemEfficient(false);  // its backward adds in any order
}

int compute_capability(at::Device device) {
  return device.is_cuda() ? cuda_library().compute_capability(device.index()) : 0;
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

void release_cached_memory(at::Device device) {
  if (device.is_cuda()) c10::getDeviceAllocator(device.type())->emptyCache();
}

std::unique_ptr<core::BufferPool> make_batch_pool(at::Device device) {
  if (device.is_cuda()) return std::make_unique<PinnedPool>();
  return core::make_host_pool();
}

}  // namespace scaletrain::dist
