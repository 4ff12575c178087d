#include "lib/train/rules/vote.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <vector>

#include "lib/dist/send.h"

namespace scaletrain::train {
namespace {

// Slots of the exchanged vector. Doubles add integers exactly up to 2^53, so the digest travels as
// its two halves, each below 2^32: exact for 2^21 ranks.
enum Slot : std::int64_t {
  kLossSum,
  kTargets,
  kTerminate,
  kInterrupt,
  kDigestLow,
  kDigestHigh,
  kSkipped,
  kTrained,
  kSave,
  kTraceSteps,
  kSlots,
  // With bounds.
  kLossBound = kSlots,
  kNormBound,
  kSlotsWithBounds
};
static_assert(kSlots == VoteExchange::kSize);

constexpr std::uint64_t kLowHalf = 0xFFFFFFFF;

}  // namespace

VoteExchange::VoteExchange(dist::Group& group, const Vote& own, const at::Tensor& loss_sum) {
  std::vector<double> slots(own.bounds ? kSlotsWithBounds : kSlots);
  slots[kTargets] = own.targets;
  slots[kTerminate] = own.stop == core::StopReason::kTerminate ? 1 : 0;
  slots[kInterrupt] = own.stop == core::StopReason::kInterrupt ? 1 : 0;
  slots[kDigestLow] = static_cast<double>(own.digest & kLowHalf);
  slots[kDigestHigh] = static_cast<double>(own.digest >> 32);
  slots[kSkipped] = static_cast<double>(own.skipped);
  slots[kTrained] = group.rank() == 0 ? own.trained_s : 0;
  slots[kSave] = own.save ? 1 : 0;
  slots[kTraceSteps] = static_cast<double>(own.trace_steps);
  if (own.bounds && group.rank() == 0) {
    slots[kLossBound] = own.bounds->loss;
    slots[kNormBound] = own.bounds->grad_norm;
  }
  sums_ = dist::send(slots, group.device());
  sums_.select(0, kLossSum).copy_(loss_sum);
  pending_ = group.all_reduce_sum(sums_, "step consensus");
}

const at::Tensor& VoteExchange::sums() {
  pending_.wait();
  return sums_;
}

Voted read_votes(std::span<const double> sums) {
  Voted voted;
  voted.loss_sum = sums[kLossSum];
  Vote& vote = voted.vote;
  vote.targets = sums[kTargets];
  if (sums[kTerminate] > 0) vote.stop = core::StopReason::kTerminate;
  if (sums[kInterrupt] > 0) vote.stop = core::StopReason::kInterrupt;
  vote.digest = static_cast<std::uint64_t>(sums[kDigestLow]) +
                (static_cast<std::uint64_t>(sums[kDigestHigh]) << 32);
  vote.skipped = static_cast<std::int64_t>(sums[kSkipped]);
  vote.trained_s = sums[kTrained];
  vote.save = sums[kSave] > 0;
  vote.trace_steps = static_cast<std::int64_t>(sums[kTraceSteps]);
  if (sums.size() == kSlotsWithBounds) vote.bounds = {sums[kLossBound], sums[kNormBound]};
  return voted;
}

at::Tensor loss_among(const at::Tensor& sums) { return sums.select(0, kLossSum); }

at::Tensor norm_bound_among(const at::Tensor& sums) { return sums.select(0, kNormBound); }

at::Tensor spikes_among(const at::Tensor& sums, const at::Tensor& grad_norm) {
  const at::NoGradGuard no_grad;
  const at::Tensor targets = sums.select(0, kTargets);
  const at::Tensor loss = loss_among(sums) / targets.masked_fill(targets.eq(0), 1);
  const at::Tensor of_norm = grad_norm.gt(norm_bound_among(sums)).to(at::kDouble);
  const at::Tensor both = loss.gt(sums.select(0, kLossBound)).to(at::kDouble) + 2 * of_norm;
  const at::Tensor finite = (loss * 0 + grad_norm * 0).eq(0);
  return both * finite;
}

}  // namespace scaletrain::train
