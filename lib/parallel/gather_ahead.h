// Gatherings of blocks, one behind the other, that an update has changed: they go on while forward
// comes to each block. Two are under way at a time, as some exchanges need as much memory again.
#pragma once

#include <array>
#include <cstddef>
#include <functional>

#include "lib/dist/group.h"

namespace scaletrain::parallel {

class GatherAhead {
 public:
  using Begin = std::function<dist::Pending(std::size_t block)>;

  GatherAhead() = default;  // of no blocks
  // `begin` asks for a block's gathering, which nothing needs yet.
  GatherAhead(std::size_t blocks, Begin begin);

  // All blocks have changed, and none is under way: begins the first two.
  void start();
  // `block` is there; the one behind it is on its way.
  void await(std::size_t block);
  // All are there.
  void settle();
  // The blocks that have still to begin, which are the last ones.
  std::size_t rest() const { return blocks_ - begun_; }

 private:
  void begin_before(std::size_t end);
  // For the block whose place this one has, or is to have.
  void wait(std::size_t block);

  std::size_t blocks_ = 0, begun_ = 0;
  Begin begin_;
  std::array<dist::Pending, 2> under_way_;  // by the block's number, even or odd
};

}  // namespace scaletrain::parallel
