// Rows of numbers that belong to samples of a set, and the samples' positions in it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "lib/data/loader/batch.h"
#include "lib/dist/group.h"
#include "lib/train/score_rows.h"

namespace scaletrain::report {

// The positions in the set of a batch's samples: those of bad samples are left out.
std::vector<std::int64_t> positions_of(const data::Batch& batch);

class PlacedRows {
 public:
  explicit PlacedRows(std::int64_t columns);

  // `rows` [samples, columns] of a batch of this rank; they are kept as fp32 on their device.
  void add(const data::Batch& batch, const at::Tensor& rows);

  // Every rank of `group` calls it; those of all ranks, in the order of the set, the same on each.
  struct All {
    std::vector<std::int64_t> positions;  // from 0, below 2^48
    at::Tensor rows;                      // [samples, columns] fp32 on the host
  };
  All gather(dist::Group& group) const;

 private:
  std::int64_t columns_;
  train::ScoreRows rows_;
};

}  // namespace scaletrain::report
