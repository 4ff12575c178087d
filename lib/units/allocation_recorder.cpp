#include "lib/units/allocation_recorder.h"

#include <utility>

namespace scaletrain::units {

void AllocationRecorder::start() {
  const MemoryUse held = live();
  trace_ = {.samples = 0, .held = {held.bytes.begin(), held.bytes.end()}, .events = {}};
  records_ = true;
}

core::AllocationTrace AllocationRecorder::stop(std::int64_t samples) {
  records_ = false;
  trace_.samples = samples;
  return std::exchange(trace_, {});
}

void AllocationRecorder::changed(MemoryKind kind, std::int64_t bytes) {
  if (records_) trace_.events.push_back({.kind = static_cast<std::size_t>(kind), .bytes = bytes});
}

}  // namespace scaletrain::units
