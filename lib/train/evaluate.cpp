#include "lib/train/evaluate.h"

#include <ATen/ops/topk.h>
#include <c10/core/GradMode.h>

#include <algorithm>

namespace scaletrain::train {
namespace {

constexpr std::int64_t kTop = 5;

// Adds the batch's loss, hits at 1 and at 5, and count to `sums` [4] double.
void add_batch(const at::Tensor& logits, const at::Tensor& targets, const at::Tensor& loss_sum,
               at::Tensor& sums) {
  const std::int64_t top = std::min(kTop, logits.size(1));
  const at::Tensor best = std::get<1>(logits.topk(top, 1));  // [count, top], best first
  const at::Tensor hits = best.eq(targets.unsqueeze(1));
  sums[0].add_(loss_sum);
  sums[1].add_(hits.narrow(1, 0, 1).sum());
  sums[2].add_(hits.sum());
  sums[3].add_(targets.size(0));
}

}  // namespace

EvalResult evaluate(nn::Model& model, const nn::Loss& loss, precision::Precision& precision,
                    const input::ImageInput& input, data::EvalLoader& loader, dist::Group& group) {
  const at::NoGradGuard no_grad;
  model.eval();
  loader.rewind();
  at::Tensor sums = at::zeros({5}, at::TensorOptions(at::kDouble).device(group.device()));
  EvalResult result;
  while (const auto images = loader.next()) {
    result.bad_samples.insert(result.bad_samples.end(), images->skipped.begin(),
                              images->skipped.end());
    if (images->count == 0) continue;  // all of them were bad
    const input::DeviceBatch batch = input.prepare(*images);
    at::Tensor logits;
    const at::Tensor loss_sum = precision.forward([&] {
      logits = model.forward(batch.images);
      return loss.sum(logits, batch.targets);
    });
    add_batch(logits.to(at::kFloat), batch.targets, loss_sum, sums);
  }
  model.train();
  sums[4].add_(static_cast<double>(result.bad_samples.size()));
  group.all_reduce_sum(sums, "evaluation sums").wait();
  const at::Tensor host = sums.cpu();
  const double* const totals = host.const_data_ptr<double>();
  const double count = std::max(totals[3], 1.0);
  result.loss = totals[0] / count;
  result.top1 = totals[1] / count;
  result.top5 = totals[2] / count;
  result.count = static_cast<std::int64_t>(totals[3]);
  result.skipped = static_cast<std::int64_t>(totals[4]);
  return result;
}

}  // namespace scaletrain::train
