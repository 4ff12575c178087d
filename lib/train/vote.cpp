#include "lib/train/vote.h"

#include <ATen/ops/empty.h>

namespace scaletrain::train {
namespace {

// Slots of the exchanged vector. Doubles add integers exactly up to 2^53, so the digest travels as
// its two halves, each below 2^32: exact for 2^21 ranks.
enum Slot : std::int64_t {
  kLossSum,
  kTargets,
  kNotFinite,
  kTerminate,
  kInterrupt,
  kDigestLow,
  kDigestHigh,
  kSkipped,
  kTrained,
  kSlots
};

constexpr std::uint64_t kLowHalf = 0xFFFFFFFF;

}  // namespace

VoteExchange::VoteExchange(dist::Group& group, const Vote& own)
    : sums_(at::empty({kSlots}, at::kDouble)) {
  auto* const slots = sums_.mutable_data_ptr<double>();
  slots[kLossSum] = own.loss_sum;
  slots[kTargets] = own.targets;
  slots[kNotFinite] = own.finite ? 0 : 1;
  slots[kTerminate] = own.stop == core::StopReason::kTerminate ? 1 : 0;
  slots[kInterrupt] = own.stop == core::StopReason::kInterrupt ? 1 : 0;
  slots[kDigestLow] = static_cast<double>(own.digest & kLowHalf);
  slots[kDigestHigh] = static_cast<double>(own.digest >> 32);
  slots[kSkipped] = static_cast<double>(own.skipped);
  slots[kTrained] = group.rank() == 0 ? own.trained_s : 0;
  sums_ = sums_.to(group.device());
  pending_ = group.all_reduce_sum(sums_, "vote");
}

Vote VoteExchange::result() {
  pending_.wait();
  const at::Tensor host = sums_.cpu();
  const auto* const slots = host.const_data_ptr<double>();
  Vote vote;
  vote.loss_sum = slots[kLossSum];
  vote.targets = slots[kTargets];
  vote.finite = slots[kNotFinite] == 0;
  if (slots[kTerminate] > 0) vote.stop = core::StopReason::kTerminate;
  if (slots[kInterrupt] > 0) vote.stop = core::StopReason::kInterrupt;
  vote.digest = static_cast<std::uint64_t>(slots[kDigestLow]) +
                (static_cast<std::uint64_t>(slots[kDigestHigh]) << 32);
  vote.skipped = static_cast<std::int64_t>(slots[kSkipped]);
  vote.trained_s = slots[kTrained];
  return vote;
}

}  // namespace scaletrain::train
