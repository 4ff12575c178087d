#include "lib/train/vote.h"

#include <doctest/doctest.h>

#include <chrono>

using scaletrain::core::StopReason;
using scaletrain::train::Vote;
using scaletrain::train::VoteExchange;

namespace {

// What one rank alone hears back.
Vote exchanged(const Vote& own) {
  scaletrain::dist::Group group({}, at::kCPU, std::chrono::seconds(1));
  return VoteExchange(group, own).result();
}

}  // namespace

TEST_CASE("every field comes back; all 64 bits of a digest do") {
  const Vote vote = exchanged({.loss_sum = 1.5,
                               .targets = 32,
                               .finite = true,
                               .stop = StopReason::kNone,
                               .digest = 0xFEDCBA9876543211,
                               .skipped = 3,
                               .trained_s = 2.5});
  CHECK(vote.loss_sum == 1.5);
  CHECK(vote.targets == 32);
  CHECK(vote.finite);
  CHECK(vote.stop == StopReason::kNone);
  CHECK(vote.digest == 0xFEDCBA9876543211);
  CHECK(vote.skipped == 3);
  CHECK(vote.trained_s == 2.5);
}

TEST_CASE("what is not finite and who asked to stop come back") {
  CHECK(!exchanged({.finite = false}).finite);
  CHECK(exchanged({.stop = StopReason::kTerminate}).stop == StopReason::kTerminate);
  CHECK(exchanged({.stop = StopReason::kInterrupt}).stop == StopReason::kInterrupt);
}
