// Counts what tensors on the CPU take, whichever thread takes it or gives it back.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace scaletrain::testing {

// Of the whole process, from install() to its end: for one that a test has forked.
class CountingAllocator : public c10::Allocator {
 public:
  static CountingAllocator& install() {
    static CountingAllocator* const one = [] {
      auto* const made = new CountingAllocator();  // tensors may outlive whoever counts them
      c10::SetCPUAllocator(made, /*priority=*/200);
      return made;
    }();
    return *one;
  }

  std::int64_t live() const {
    const std::lock_guard lock(mutex_);
    return live_;
  }
  std::int64_t peak() const {
    const std::lock_guard lock(mutex_);
    return peak_;
  }
  void restart_peak() {
    const std::lock_guard lock(mutex_);
    peak_ = live_;
  }

  at::DataPtr allocate(std::size_t bytes) override {
    void* const data = c10::alloc_cpu(bytes);
    const std::lock_guard lock(mutex_);
    if (data != nullptr) blocks_[data] = static_cast<std::int64_t>(bytes);
    live_ += static_cast<std::int64_t>(bytes);
    peak_ = std::max(peak_, live_);
    return {data, data, &give_back, at::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &give_back; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

 private:
  CountingAllocator() = default;

  static void give_back(void* data) {
    if (data == nullptr) return;
    CountingAllocator& one = install();
    {
      const std::lock_guard lock(one.mutex_);
      const auto block = one.blocks_.find(data);
      one.live_ -= block->second;
      one.blocks_.erase(block);
    }
    c10::free_cpu(data);
  }

  mutable std::mutex mutex_;
  std::unordered_map<const void*, std::int64_t> blocks_;
  std::int64_t live_ = 0, peak_ = 0;
};

}  // namespace scaletrain::testing
