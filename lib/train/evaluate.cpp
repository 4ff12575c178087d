#include "lib/train/evaluate.h"

#include <ATen/ops/topk.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "lib/core/clock.h"

namespace scaletrain::train {
namespace {

constexpr std::int64_t kTop = 5;
constexpr double kAskEveryS = 0.5;  // whether another rank was asked to stop

// Where in the exchanged sums what is.
enum Slot : std::int64_t { kLoss, kTop1, kTop5, kCount, kSkipped, kTerminate, kInterrupt, kSlots };

// Whether evaluation shall end now; asks the other ranks now and then.
class StopCheck {
 public:
  explicit StopCheck(dist::Group& group) : group_(group) {}

  bool operator()() {
    const bool own = core::stop_reason() != core::StopReason::kNone;
    if (!own && core::seconds_since(asked_) < kAskEveryS) return false;
    asked_ = core::now();
    return group_.stop_was_told(own);
  }

 private:
  dist::Group& group_;
  core::SteadyTime asked_ = core::now();
};

// Adds the batch's loss, hits at 1 and at 5, and count to `sums` [kSlots] double.
void add_batch(const at::Tensor& logits, const at::Tensor& targets, const at::Tensor& loss_sum,
               at::Tensor& sums) {
  const std::int64_t top = std::min(kTop, logits.size(1));
  const at::Tensor best = std::get<1>(logits.topk(top, 1));  // [count, top], best first
  const at::Tensor hits = best.eq(targets.unsqueeze(1));
  sums[kLoss].add_(loss_sum);
  sums[kTop1].add_(hits.narrow(1, 0, 1).sum());
  sums[kTop5].add_(hits.sum());
  sums[kCount].add_(targets.size(0));
}

}  // namespace

EvalResult evaluate(nn::Model& model, const nn::Loss& loss, precision::Precision& precision,
                    const input::ImageInput& input, data::EvalLoader& loader, dist::Group& group,
                    core::Beat& beat) {
  const at::NoGradGuard no_grad;
  model.eval();
  loader.rewind();
  at::Tensor sums = at::zeros({kSlots}, at::TensorOptions(at::kDouble).device(group.device()));
  EvalResult result;
  StopCheck stops(group);
  bool cut_short = false;
  while (!(cut_short = stops())) {
    const auto images = loader.next();
    if (!images) break;
    beat.enter(core::Phase::kValidating);
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
  sums[kSkipped].add_(static_cast<double>(result.bad_samples.size()));
  if (cut_short && core::stop_reason() != core::StopReason::kNone) {
    sums[core::stop_reason() == core::StopReason::kInterrupt ? kInterrupt : kTerminate].add_(1);
  }
  group.all_reduce_sum(sums, "evaluation sums").wait();
  const at::Tensor host = sums.cpu();
  const auto* const totals = host.const_data_ptr<double>();
  const double count = std::max(totals[kCount], 1.0);
  result.loss = totals[kLoss] / count;
  result.top1 = totals[kTop1] / count;
  result.top5 = totals[kTop5] / count;
  result.count = static_cast<std::int64_t>(totals[kCount]);
  result.skipped = static_cast<std::int64_t>(totals[kSkipped]);
  if (totals[kTerminate] > 0) result.stop = core::StopReason::kTerminate;
  if (totals[kInterrupt] > 0) result.stop = core::StopReason::kInterrupt;
  return result;
}

}  // namespace scaletrain::train
