// What all ranks must know alike after a step: one small all-reduce, under way during backward.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "lib/core/signals.h"
#include "lib/dist/group.h"

namespace scaletrain::train {

// One rank's word on a step; sums over the ranks after the exchange.
struct Vote {
  double loss_sum = 0;  // over the targets of the step's micro-batches
  double targets = 0;
  bool finite = true;                               // of all ranks
  core::StopReason stop = core::StopReason::kNone;  // the strongest that any rank heard
  std::uint64_t digest = 0;                         // sum of sample digests modulo 2^64
  std::int64_t skipped = 0;                         // bad samples
  double trained_s = 0;  // rank 0's clock, so that all ranks see the same time
};

class VoteExchange {
 public:
  // Starts the exchange; every rank calls it at the same point of a step.
  VoteExchange(dist::Group& group, const Vote& own);
  // Waits; the result is the same on all ranks.
  Vote result();

 private:
  at::Tensor sums_;
  dist::Pending pending_;
};

}  // namespace scaletrain::train
