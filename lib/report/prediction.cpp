#include "lib/report/prediction.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/topk.h>

#include <algorithm>
#include <set>
#include <utility>

namespace scaletrain::report {
namespace {

// Before the logits of a row; whole numbers up to 2^48 stand in two fp32 columns.
enum Column : std::int64_t { kHigh, kLow, kLabel, kColumns };
constexpr std::int64_t kPart = 1 << 24;

}  // namespace

std::vector<std::int64_t> positions_of(const data::Batch& batch) {
  std::set<std::int64_t> bad;
  for (const data::BadSample& sample : batch.skipped) bad.insert(sample.position);
  std::vector<std::int64_t> positions;
  positions.reserve(static_cast<std::size_t>(batch.count));
  for (std::int64_t at = batch.position; std::ssize(positions) < batch.count; ++at) {
    if (!bad.contains(at)) positions.push_back(at);
  }
  return positions;
}

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
    : num_classes_(num_classes), top_(top), rows_(kColumns + num_classes) {}

void Predictions::add(const data::Batch& batch, const at::Tensor& labels,
                      const at::Tensor& logits) {
  std::vector<std::int64_t> positions = positions_of(batch);
  const at::Tensor places =
      at::from_blob(positions.data(), {std::ssize(positions)}, at::kLong).to(logits.device());
  const at::Tensor head =
      at::stack({places.floor_divide(kPart), places.remainder(kPart), labels}, 1);
  rows_.add(at::cat({head.to(at::kFloat), logits.to(at::kFloat)}, 1), batch.position);
}

Predictions::All Predictions::gather(dist::Group& group) const {
  const at::Tensor rows = rows_.gather(group);
  All all;
  all.logits = rows.narrow(1, kColumns, num_classes_).contiguous();
  const at::Tensor head = rows.narrow(1, 0, kColumns).to(at::kLong).contiguous();
  all.labels = head.select(1, kLabel).contiguous();
  const auto* const numbers = head.const_data_ptr<std::int64_t>();
  std::vector<std::int64_t> positions(static_cast<std::size_t>(rows.size(0)));
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const std::int64_t* const row = numbers + i * kColumns;
    positions[i] = row[kHigh] * kPart + row[kLow];
  }
  all.predictions = predict(all.logits, all.labels, positions, top_);
  return all;
}

}  // namespace scaletrain::report
