// Prefetch: all-gathers of updated parameter blocks overlap with the next forward. Two are under
// way at a time, as some collectives need as much memory again.
#pragma once

#include <array>
#include <cstddef>
#include <functional>

#include "lib/dist/group.h"

namespace scaletrain::parallel {

class GatherAhead {
 public:
  using Begin = std::function<dist::Pending(std::size_t block)>;

  GatherAhead() = default;  // handles no blocks
  // `begin` starts the all-gather of a block that no computation uses yet.
  GatherAhead(std::size_t blocks, Begin begin);

  // Call after an update has changed all blocks: starts the first two. None may be under way.
  void start();
  // Waits for `block` and starts the next one.
  void await(std::size_t block);
  // Waits for all blocks.
  void settle();
  // Number of blocks that were not started yet; they are the last ones.
  std::size_t rest() const { return blocks_ - begun_; }

 private:
  void begin_before(std::size_t end);
  // Waits for the all-gather that occupies the slot of `block`.
  void wait(std::size_t block);

  std::size_t blocks_ = 0, begun_ = 0;
  Begin begin_;
  std::array<dist::Pending, 2> under_way_;  // slot: block number modulo 2
};

}  // namespace scaletrain::parallel
