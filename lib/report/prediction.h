// Predictions of a classifier for single images, gathered from all ranks.
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
  std::int64_t position = 0;  // position in the set, from 0
  std::int64_t label = 0;     // true class; 0 for an image without a label
  double loss = 0;            // negative log likelihood of the true class
  std::vector<Guess> top;     // highest probability first, at least one

  bool is_right() const { return top.front().class_number == label; }
};

// Returns the `top` most probable classes of each row of `logits`, [samples, classes], by softmax
// in fp32; `labels`, [samples] int64, on the same device.
std::vector<Prediction> predict(const at::Tensor& logits, const at::Tensor& labels,
                                const std::vector<std::int64_t>& positions, std::int64_t top);

// Collects the predictions of an evaluation, and the logits for measures that need them.
class Predictions {
 public:
  // `top`: number of classes kept for each sample, as in predict().
  explicit Predictions(std::int64_t num_classes, std::int64_t top = kMostTop);

  // Adds a batch of this rank; keeps the logits as fp32 on their device.
  void add(const data::Batch& batch, const at::Tensor& labels, const at::Tensor& logits);

  // Predictions of all ranks of `group` in the set's order, equal on each rank. Collective.
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
