#include "lib/parallel/gather_ahead.h"

#include <algorithm>
#include <utility>

namespace scaletrain::parallel {

GatherAhead::GatherAhead(std::size_t blocks, Begin begin)
    : blocks_(blocks), begun_(blocks), begin_(std::move(begin)) {}

void GatherAhead::start() {
  begun_ = 0;
  begin_before(2);
}

void GatherAhead::await(std::size_t block) {
  begin_before(block + 2);
  if (block + 2 >= begun_) wait(block);  // earlier blocks were waited for
}

void GatherAhead::settle() {
  begin_before(blocks_);
  for (std::size_t block = 0; block < under_way_.size(); ++block) wait(block);
}

void GatherAhead::begin_before(std::size_t end) {
  for (; begun_ < std::min(end, blocks_); ++begun_) {
    wait(begun_);
    under_way_[begun_ % under_way_.size()] = begin_(begun_);
  }
}

void GatherAhead::wait(std::size_t block) {
  std::exchange(under_way_[block % under_way_.size()], dist::Pending()).wait();
}

}  // namespace scaletrain::parallel
