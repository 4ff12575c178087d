// Scores of each sample, for measures that are not sums.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "lib/dist/group.h"

namespace scaletrain::train {

class ScoreRows {
 public:
  // Rows of `columns` numbers; with 0 columns nothing is communicated.
  explicit ScoreRows(std::int64_t columns) : columns_(columns) {}

  // `rows`, [samples, columns] fp32 on the device, belong to this rank's samples, the first of
  // which is at `position` of the set. They stay on the device until gather().
  void add(const at::Tensor& rows, std::int64_t position);

  // Gathers the rows of all ranks of `group`: [samples, columns], fp32, on the host, sorted by
  // sample. Returns an undefined tensor for 0 columns. Collective; ranks may have different numbers
  // of rows.
  at::Tensor gather(dist::Group& group) const;

 private:
  std::int64_t columns_;
  std::vector<at::Tensor> rows_, positions_;  // one a batch; positions are on the host
};

}  // namespace scaletrain::train
