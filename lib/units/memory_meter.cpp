#include "lib/units/memory_meter.h"

#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace scaletrain::units {
namespace {

// Slot where LibTorch's allocators look for a memory reporter.
constexpr c10::DebugInfoKind kPlace = c10::DebugInfoKind::PROFILER_STATE;

}  // namespace

std::int64_t MemoryUse::total() const {
  return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
}

MemoryUse MemoryMeter::live() const {
  const std::lock_guard lock(mutex_);
  return live_;
}

MemoryUse MemoryMeter::peak() const {
  const std::lock_guard lock(mutex_);
  return peak_;
}

MemoryUse MemoryMeter::peak_of_each() const {
  const std::lock_guard lock(mutex_);
  return peak_of_each_;
}

void MemoryMeter::restart_peaks() {
  const std::lock_guard lock(mutex_);
  peak_ = peak_of_each_ = live_;
}

void MemoryMeter::attribute(const std::vector<at::Tensor>& tensors, MemoryKind kind) {
  const std::lock_guard lock(mutex_);
  for (const at::Tensor& tensor : tensors) {
    const auto found = blocks_.find(tensor.storage().data());
    if (found == blocks_.end()) continue;
    Block& block = found->second;
    add(block.kind, -block.bytes);
    block.kind = kind;
    add(block.kind, block.bytes);
  }
}

MemoryKind MemoryMeter::enter(MemoryKind kind) {
  const std::lock_guard lock(mutex_);
  return std::exchange(kind_, kind);
}

void MemoryMeter::reportMemoryUsage(void* block, std::int64_t bytes, std::size_t /*allocated*/,
                                    std::size_t /*reserved*/, c10::Device device) {
  if (device.type() != device_) return;
  const std::lock_guard lock(mutex_);
  // A free on another thread was not reported: the same address is allocated again.
  const auto known = blocks_.find(block);
  if (known != blocks_.end()) {
    add(known->second.kind, -known->second.bytes);
    changed(known->second.kind, -known->second.bytes);
    blocks_.erase(known);
  }
  if (bytes <= 0) return;
  blocks_.emplace(block, Block{bytes, kind_});
  add(kind_, bytes);
  changed(kind_, bytes);
}

void MemoryMeter::add(MemoryKind kind, std::int64_t bytes) {
  const auto place = static_cast<std::size_t>(kind);
  live_.bytes.at(place) += bytes;
  peak_of_each_.bytes.at(place) = std::max(peak_of_each_.bytes.at(place), live_.bytes.at(place));
  if (live_.total() > peak_.total()) peak_ = live_;
}

struct MemoryWatch::Guard {
  explicit Guard(std::shared_ptr<MemoryMeter> meter) : info(kPlace, std::move(meter)) {}
  c10::DebugInfoGuard info;
};

MemoryWatch::MemoryWatch(std::shared_ptr<MemoryMeter> meter)
    : guard_(std::make_unique<Guard>(std::move(meter))) {}
MemoryWatch::~MemoryWatch() = default;

MemoryPhase::MemoryPhase(MemoryKind kind)
    : meter_(dynamic_cast<MemoryMeter*>(c10::ThreadLocalDebugInfo::get(kPlace))) {
  if (meter_ != nullptr) before_ = meter_->enter(kind);
}

MemoryPhase::~MemoryPhase() {
  if (meter_ != nullptr) meter_->enter(before_);
}

}  // namespace scaletrain::units
