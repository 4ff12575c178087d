// Step consensus: one small asynchronous all-reduce during backward, so that all ranks agree.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>

#include "lib/core/process/signals.h"
#include "lib/dist/group.h"
#include "lib/train/rules/spike_bounds.h"

namespace scaletrain::train {

// One rank's contribution to the consensus on a step; sums over the ranks after the all-reduce.
struct Vote {
  double targets = 0;  // sum over the step's micro-batches: task::Task::weight_of()
  core::StopReason stop = core::StopReason::kNone;  // strongest signal of any rank
  std::uint64_t digest = 0;                         // sum of sample digests modulo 2^64
  std::int64_t skipped = 0;                         // bad samples
  double trained_s = 0;          // rank 0's clock, so that all ranks see the same time
  bool save = false;             // rank 0 requests a checkpoint after this step
  std::int64_t trace_steps = 0;  // rank 0 requests a trace of so many steps; 0: none
  // Rank 0's count for all ranks. Set on all ranks or on none; unset: spikes are not looked for.
  std::optional<SpikeBounds> bounds = {};
};

class VoteExchange {
 public:
  // Starts an asynchronous all-reduce of `own` and of `loss_sum`, a 0-dim double on the group's
  // device. Collective: all ranks call it at the same point of a step.
  VoteExchange(dist::Group& group, const Vote& own, const at::Tensor& loss_sum);

  // Waits for the all-reduce and returns the sums over the ranks: kSize doubles on the device, and
  // two more with Vote::bounds.
  const at::Tensor& sums();

  static constexpr std::int64_t kSize = 10;

 private:
  at::Tensor sums_;
  dist::Pending pending_;
};

// Consensus on a step, equal on all ranks.
struct Voted {
  double loss_sum = 0;
  Vote vote;
};
Voted read_votes(std::span<const double> sums);
// Returns the sum of the losses; not finite if that of any rank is not.
at::Tensor loss_among(const at::Tensor& sums);
// The bound of the gradient norm among them, a 0-dim double; they have bounds.
at::Tensor norm_bound_among(const at::Tensor& sums);
// Spikes of a step as a 0-dim double on the device: 1 if the mean loss is above its bound, plus 2
// if `grad_norm` is above its own. `sums` have bounds. Values that are not finite are no spike.
at::Tensor spikes_among(const at::Tensor& sums, const at::Tensor& grad_norm);

}  // namespace scaletrain::train
