// Predictions of multi-label image classification: a probability for each class.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lib/data/loader/batch.h"
#include "lib/dist/group.h"
#include "lib/report/placed_rows.h"

namespace scaletrain::report {

class ClassSetPredictions {
 public:
  explicit ClassSetPredictions(std::int64_t num_classes);

  // Adds a batch of this rank: `targets`, 1 if a sample has the class, and `logits`, both [samples,
  // classes] on one device.
  void add(const data::Batch& batch, const at::Tensor& targets, const at::Tensor& logits);

  // Predictions of all ranks of `group` in the set's order, equal on each rank. Collective.
  struct All {
    std::vector<std::int64_t> positions;  // position in the set, from 0
    at::Tensor targets, shares;  // [samples, classes] fp32 on the CPU; `shares` are sigmoids
  };
  All gather(dist::Group& group) const;

 private:
  std::int64_t num_classes_;
  PlacedRows rows_;
};

// CSV table "key,labels,predicted,probability_NAME,..." with a line for each sample; `keys` are the
// samples' keys. `labels` and `predicted` (classes with a probability above 0.5) are JSON lists of
// names.
std::string class_set_csv(const std::vector<std::string>& keys,
                          const ClassSetPredictions::All& predictions,
                          const std::vector<std::string>& names);

}  // namespace scaletrain::report
