// Measures the memory of tensors by purpose.
//
// LibTorch's allocators report each block to a reporter registered on the thread, and backward's
// threads inherit it, so CPU and CUDA are measured alike; without a reporter nothing is slower. A
// block counts for the purpose of the current MemoryPhase until attribute() changes it.
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
  kParameters,   // also buffers
  kGradients,    // gradients of parameters, and in backward those of activations
  kOptimizer,    // optimizer state, and temporary tensors of its step
  kActivations,  // tensors computed in forward
  kInputs,       // batches
  kOther
};
inline constexpr std::size_t kMemoryKinds = 6;
inline constexpr std::array<const char*, kMemoryKinds> kMemoryKindNames{
    "parameters", "gradients", "optimizer", "activations", "inputs", "other"};

// Bytes for each kind.
struct MemoryUse {
  std::array<std::int64_t, kMemoryKinds> bytes{};

  std::int64_t of(MemoryKind kind) const { return bytes.at(static_cast<std::size_t>(kind)); }
  std::int64_t total() const;
};

// Measures tensors on one type of device that are allocated while a MemoryWatch is active.
class MemoryMeter : public c10::MemoryReportingInfoBase {
 public:
  explicit MemoryMeter(at::DeviceType device) : device_(device) {}

  MemoryUse live() const;
  // Use at the time of the highest total; the kinds add up to that peak.
  MemoryUse peak() const;
  // Highest use of each kind, at different times.
  MemoryUse peak_of_each() const;
  // Resets all peaks to the current use.
  void restart_peaks();
  // Counts the storages of `tensors` as `kind` from now on.
  void attribute(const std::vector<at::Tensor>& tensors, MemoryKind kind);

  // Sets the kind of later allocations; returns the previous kind.
  MemoryKind enter(MemoryKind kind);

  void reportMemoryUsage(void* block, std::int64_t bytes, std::size_t allocated,
                         std::size_t reserved, c10::Device device) override;
  bool memoryProfilingEnabled() const override { return true; }

 protected:
  // Called for each block that is allocated (bytes > 0) or freed (bytes < 0); may not call back.
  virtual void changed(MemoryKind /*kind*/, std::int64_t /*bytes*/) {}

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

// While it exists, allocations of this thread are reported to `meter`.
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

// While it exists, allocations count as `kind`, if this thread is measured.
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
