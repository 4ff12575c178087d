#include "lib/report/prediction.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/topk.h>

#include <algorithm>

namespace scaletrain::report {

std::vector<Prediction> predict(const at::Tensor& logits, const at::Tensor& labels,
                                const std::vector<std::int64_t>& positions, std::int64_t top) {
  const at::Tensor log_shares = logits.to(at::kFloat).log_softmax(1);
  const std::int64_t most = std::min(top, logits.size(1));
  const auto [best, classes] = log_shares.topk(most, 1);
  const at::Tensor shares = best.to(at::kDouble).exp().cpu().contiguous();
  const at::Tensor numbers = classes.cpu().contiguous();
  const at::Tensor losses =
      log_shares.gather(1, labels.unsqueeze(1)).squeeze(1).neg().to(at::kDouble).cpu();
  const at::Tensor own_labels = labels.cpu();
  std::vector<Prediction> result(positions.size());
  for (std::size_t i = 0; i < result.size(); ++i) {
    Prediction& one = result[i];
    one.position = positions[i];
    one.label = own_labels.const_data_ptr<std::int64_t>()[i];
    one.loss = losses.const_data_ptr<double>()[i];
    one.top.reserve(static_cast<std::size_t>(most));
    for (std::int64_t k = 0; k < most; ++k) {
      const std::size_t at = i * static_cast<std::size_t>(most) + static_cast<std::size_t>(k);
      one.top.push_back({.class_number = numbers.const_data_ptr<std::int64_t>()[at],
                         .probability = shares.const_data_ptr<double>()[at]});
    }
  }
  return result;
}

Predictions::Predictions(std::int64_t num_classes, std::int64_t top)
    : num_classes_(num_classes), top_(top), rows_(1 + num_classes) {}

void Predictions::add(const data::Batch& batch, const at::Tensor& labels,
                      const at::Tensor& logits) {
  rows_.add(batch, at::cat({labels.unsqueeze(1).to(at::kFloat), logits.to(at::kFloat)}, 1));
}

Predictions::All Predictions::gather(dist::Group& group) const {
  const PlacedRows::All rows = rows_.gather(group);
  All all;
  all.labels = rows.rows.select(1, 0).to(at::kLong).contiguous();
  all.logits = rows.rows.narrow(1, 1, num_classes_).contiguous();
  all.predictions = predict(all.logits, all.labels, rows.positions, top_);
  return all;
}

}  // namespace scaletrain::report
