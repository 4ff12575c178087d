// All-gathers of each block in a micro-batch of a step, following lib/parallel/sharded.h: the next
// unit's blocks are prefetched, and the last unit's stay unsharded from forward to backward.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/parallel/unit_flats.h"

namespace scaletrain::train {

class GatherCount {
 public:
  GatherCount(const std::vector<parallel::FlatPlan>& blocks, std::size_t units)
      : count(blocks.size(), 0),
        of_unit_(units),
        users_(blocks.size(), 0),
        is_there_(units, false) {
    for (std::size_t block = 0; block < blocks.size(); ++block) {
      for (const std::size_t unit : blocks[block].units) of_unit_[unit].push_back(block);
    }
  }

  std::vector<std::int64_t> count;  // all-gathers by block

  // Forward and backward of the units from `begin` to `end`. `stays`: the last one does in between.
  void pass(std::size_t begin, std::size_t end, bool stays) {
    const std::size_t units = of_unit_.size();
    for (std::size_t unit = begin; unit < end; ++unit) {
      fetch(unit);
      if (unit + 1 < units) fetch(unit + 1);
      if (unit + 1 < end || !stays) give_back(unit);
    }
    for (std::size_t unit = end; unit-- > begin;) {
      fetch(unit);
      if (unit > 0) fetch(unit - 1);
      give_back(unit);
    }
  }

 private:
  void fetch(std::size_t unit) {
    if (is_there_[unit] || of_unit_[unit].empty()) return;
    is_there_[unit] = true;
    for (const std::size_t block : of_unit_[unit]) {
      if (users_[block]++ == 0) ++count[block];
    }
  }
  void give_back(std::size_t unit) {
    if (!is_there_[unit]) return;
    is_there_[unit] = false;
    for (const std::size_t block : of_unit_[unit]) --users_[block];
  }

  std::vector<std::vector<std::size_t>> of_unit_;
  std::vector<int> users_;
  std::vector<bool> is_there_;
};

}  // namespace scaletrain::train
