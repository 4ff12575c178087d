// What a model says of images with any number of classes, a probability for each class.
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

  // A batch of this rank: `targets`, 1 where a sample has the class, and `logits`, both [samples,
  // classes] on one device.
  void add(const data::Batch& batch, const at::Tensor& targets, const at::Tensor& logits);

  // Every rank of `group` calls it; those of all ranks, in the order of the set, the same on each.
  struct All {
    std::vector<std::int64_t> positions;  // in the set, from 0
    at::Tensor targets, shares;           // [samples, classes] fp32 on the host; by sigmoid
  };
  All gather(dist::Group& group) const;

 private:
  std::int64_t num_classes_;
  PlacedRows rows_;
};

// "key,labels,predicted,probability_NAME,..." and a line for each sample, whose keys are `keys`.
// Of a sample, `labels` and `predicted` (the classes of more than one half) are JSON lists of
// names.
std::string class_set_csv(const std::vector<std::string>& keys,
                          const ClassSetPredictions::All& predictions,
                          const std::vector<std::string>& names);

}  // namespace scaletrain::report
