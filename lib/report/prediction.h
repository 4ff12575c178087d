// What a classifier says of single images, and how it is gathered from the ranks.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "lib/data/loader/batch.h"
#include "lib/dist/group.h"
#include "lib/report/placed_rows.h"

namespace scaletrain::report {

inline constexpr std::int64_t kMostTop = 5;

struct Guess {
  std::int64_t class_number = 0;
  double probability = 0;
};

struct Prediction {
  std::int64_t position = 0;  // in the set, from 0
  std::int64_t label = 0;     // the class that it has; of an image without one 0
  double loss = 0;            // - ln of the probability of that class
  std::vector<Guess> top;     // the likeliest first, at least one

  bool is_right() const { return top.front().class_number == label; }
};

// The `top` likeliest classes of each row of `logits`, [samples, classes], by softmax in fp32;
// `labels` [samples] int64, both on one device.
std::vector<Prediction> predict(const at::Tensor& logits, const at::Tensor& labels,
                                const std::vector<std::int64_t>& positions, std::int64_t top);

// The predictions and, for measures that need them, the logits of an evaluation.
class Predictions {
 public:
  // `top`: as predict().
  explicit Predictions(std::int64_t num_classes, std::int64_t top = kMostTop);

  // A batch of this rank; the logits are kept as fp32 on their device.
  void add(const data::Batch& batch, const at::Tensor& labels, const at::Tensor& logits);

  // Every rank of `group` calls it; those of all ranks, in the order of the set, the same on each.
  struct All {
    std::vector<Prediction> predictions;
    at::Tensor logits;  // [samples, classes] fp32 on the host
    at::Tensor labels;  // [samples] int64
  };
  All gather(dist::Group& group) const;

 private:
  std::int64_t num_classes_, top_;
  PlacedRows rows_;
};

}  // namespace scaletrain::report
