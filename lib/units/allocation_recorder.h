// Records the allocations of a step in their order (lib/core/plan/allocation_replay.h).
#pragma once

#include "lib/core/plan/allocation_replay.h"
#include "lib/units/memory_meter.h"

namespace scaletrain::units {

class AllocationRecorder : public MemoryMeter {
 public:
  using MemoryMeter::MemoryMeter;

  // Call between steps, on the thread that takes them.
  void start();
  // Returns the trace since start(), of a step with micro-batches of `samples`.
  core::AllocationTrace stop(std::int64_t samples);

 protected:
  void changed(MemoryKind kind, std::int64_t bytes) override;

 private:
  bool records_ = false;
  core::AllocationTrace trace_;
};

}  // namespace scaletrain::units
