// How many bytes tensors take, and what for.
//
// LibTorch's allocators report every block to whoever asked for it on a thread, and backward's
// threads inherit that; so CPU and CUDA are measured alike, and where nobody measures nothing is
// slower. A block is of the kind that its phase says, until attribute() knows it better.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace scaletrain::units {

enum class MemoryKind : std::size_t {
  kParameters,   // and buffers
  kGradients,    // of parameters, and during backward of activations
  kOptimizer,    // its state, and what a step of it needs for a moment
  kActivations,  // what forward computes
  kInputs,       // batches
  kOther
};
inline constexpr std::size_t kMemoryKinds = 6;
inline constexpr std::array<const char*, kMemoryKinds> kMemoryKindNames{
    "parameters", "gradients", "optimizer", "activations", "inputs", "other"};

// Bytes by kind.
struct MemoryUse {
  std::array<std::int64_t, kMemoryKinds> bytes{};

  std::int64_t of(MemoryKind kind) const { return bytes.at(static_cast<std::size_t>(kind)); }
  std::int64_t total() const;
};

// Of the tensors on one device that are allocated while a MemoryWatch of it is on.
class MemoryMeter : public c10::MemoryReportingInfoBase {
 public:
  explicit MemoryMeter(at::DeviceType device) : device_(device) {}

  MemoryUse live() const;
  // When the sum was at its highest; the sum of kinds is that peak.
  MemoryUse peak() const;
  // The highest of each kind by itself, at different times.
  MemoryUse peak_of_each() const;
  // Peaks count from now on.
  void restart_peaks();
  // The blocks of `tensors` are of `kind` from now on.
  void attribute(const std::vector<at::Tensor>& tensors, MemoryKind kind);

  // Of blocks that are allocated from now on; the kind before.
  MemoryKind enter(MemoryKind kind);

  void reportMemoryUsage(void* block, std::int64_t bytes, std::size_t allocated,
                         std::size_t reserved, c10::Device device) override;
  bool memoryProfilingEnabled() const override { return true; }

 private:
  struct Block {
    std::int64_t bytes;
    MemoryKind kind;
  };
  void add(MemoryKind kind, std::int64_t bytes);

  const at::DeviceType device_;
  mutable std::mutex mutex_;
  MemoryKind kind_ = MemoryKind::kOther;
  std::unordered_map<const void*, Block> blocks_;
  MemoryUse live_, peak_, peak_of_each_;
};

// For its lifetime this thread's allocations are reported to `meter`.
class MemoryWatch {
 public:
  explicit MemoryWatch(std::shared_ptr<MemoryMeter> meter);
  ~MemoryWatch();
  MemoryWatch(const MemoryWatch&) = delete;
  MemoryWatch& operator=(const MemoryWatch&) = delete;

 private:
  struct Guard;
  std::unique_ptr<Guard> guard_;
};

// For its lifetime what is allocated is of `kind`, where this thread is measured.
class MemoryPhase {
 public:
  explicit MemoryPhase(MemoryKind kind);
  ~MemoryPhase();
  MemoryPhase(const MemoryPhase&) = delete;
  MemoryPhase& operator=(const MemoryPhase&) = delete;

 private:
  MemoryMeter* meter_;
  MemoryKind before_ = MemoryKind::kOther;
};

}  // namespace scaletrain::units
