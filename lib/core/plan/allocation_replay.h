// Predicts the peak memory of a training step from the allocations of two smaller ones: a step
// allocates and frees the same blocks in the same order whatever the micro-batch, and the bytes of
// each block are a linear function of the number of samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace scaletrain::core {

// A block of memory that was allocated (bytes > 0) or freed (bytes < 0).
struct AllocationEvent {
  std::size_t kind = 0;  // purpose of the block, below AllocationTrace::held.size()
  std::int64_t bytes = 0;
};

// Allocations of one step with micro-batches of `samples`.
struct AllocationTrace {
  std::int64_t samples = 0;
  std::vector<std::int64_t> held;  // bytes by kind before the step
  std::vector<AllocationEvent> events;
};

// Returns the bytes by kind at the highest total of a step with micro-batches of `samples`.
// Returns nullopt if the traces differ in their events, or have the same number of samples and
// `samples` is another one.
std::optional<std::vector<std::int64_t>> replayed_peak(const AllocationTrace& small,
                                                       const AllocationTrace& large,
                                                       std::int64_t samples);

}  // namespace scaletrain::core
