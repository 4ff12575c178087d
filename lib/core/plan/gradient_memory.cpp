#include "lib/core/plan/gradient_memory.h"

#include <algorithm>

namespace scaletrain::core {
namespace {

// Gradient memory of the last backward of a step.
class LastBackward {
 public:
  LastBackward(const std::vector<GradientBlock>& blocks, const ShardedGradients& options)
      : blocks_(blocks), options_(options) {}

  GradientPeak run() {
    std::size_t units = 0;
    std::int64_t parts = 0;
    for (const GradientBlock& block : blocks_) {
      units = std::max(units, block.last_unit + 1);
      parts += block.part;
      if (waits()) take(block.whole);
    }
    if (options_.accumulates && !options_.keeps_blocks) take(parts);
    for (std::size_t unit = units; unit-- > 0;) {
      for (const GradientBlock& block : blocks_) {
        if (block.last_unit == unit && !waits()) take(block.whole);
      }
      for (const GradientBlock& block : blocks_) {
        if (block.first_unit == unit) reduce(block);
      }
    }
    finish();
    return {.backward = peak_, .exchange = parts};
  }

 private:
  bool waits() const { return options_.keeps_blocks && options_.accumulates; }
  std::int64_t sent(std::int64_t bytes) const {
    return options_.reduces_as_bf16 ? bytes / 2 : bytes;
  }

  void take(std::int64_t bytes) {
    live_ += bytes;
    peak_ = std::max(peak_, live_);
  }

  // Starts the reduce-scatter of `block` when the previous one is done.
  void reduce(const GradientBlock& block) {
    finish();
    if (options_.reduces_as_bf16) {
      take(sent(block.whole));
      live_ -= block.whole;
    }
    take(sent(block.part));
    reducing_ = &block;
  }

  void finish() {
    if (reducing_ == nullptr) return;
    live_ -= sent(reducing_->whole);
    const bool has_part = options_.accumulates && !options_.keeps_blocks;
    if (has_part || options_.reduces_as_bf16) {
      if (!has_part) take(reducing_->part);
      live_ -= sent(reducing_->part);
    }
    reducing_ = nullptr;
  }

  const std::vector<GradientBlock>& blocks_;
  const ShardedGradients& options_;
  const GradientBlock* reducing_ = nullptr;
  std::int64_t live_ = 0, peak_ = 0;
};

}  // namespace

GradientPeak bucketed_gradients(std::int64_t bytes) {
  return {.backward = bytes, .exchange = bytes};
}

GradientPeak late_gradients(std::int64_t bytes, bool has_peers) {
  return {.backward = bytes, .exchange = has_peers ? 2 * bytes : bytes};
}

GradientPeak sharded_gradients(const std::vector<GradientBlock>& blocks,
                               const ShardedGradients& options) {
  return LastBackward(blocks, options).run();
}

}  // namespace scaletrain::core
