// Rows of numbers for the samples of a set, with the samples' positions in it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "lib/data/loader/batch.h"
#include "lib/dist/group.h"
#include "lib/train/rules/score_rows.h"

namespace scaletrain::report {

// Returns the positions in the set of a batch's samples, without skipped bad samples.
std::vector<std::int64_t> positions_of(const data::Batch& batch);

class PlacedRows {
 public:
  explicit PlacedRows(std::int64_t columns);

  // Adds `rows`, [samples, columns], of a batch of this rank; keeps them as fp32 on their device.
  void add(const data::Batch& batch, const at::Tensor& rows);

  // Rows of all ranks of `group` in the set's order, equal on each rank. Collective.
  struct All {
    std::vector<std::int64_t> positions;  // in the set, 0 to 2^48 - 1
    at::Tensor rows;                      // [samples, columns] fp32 on the host
  };
  All gather(dist::Group& group) const;

 private:
  std::int64_t columns_;
  train::ScoreRows rows_;
};

}  // namespace scaletrain::report
