// Finds slow ranks during training: every ten steps the ranks exchange their own times.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/core/process/time_ledger.h"
#include "lib/dist/group.h"
#include "lib/observe/stragglers.h"
#include "lib/train/rules/outcomes.h"

namespace scaletrain::train {

// The ranks that ten steps have shown to be slow, each reported once.
struct SlowRanks {
  std::int64_t step = 0;  // the last of the ten, from 1
  std::vector<observe::Straggler> ranks;
};

class StragglerWatch {
 public:
  // `group` must outlive it. `late`: results are held back until the next step's result is known.
  StragglerWatch(dist::Group& group, bool late) : group_(group), times_(group, late) {}

  // Call after every step, on all ranks. After every ten steps the ranks exchange their times
  // asynchronously. The result is returned at once or, when late, by drain(); all ranks report the
  // same.
  std::optional<SlowRanks> step(std::int64_t step);
  // Returns the result of the oldest exchange that was held back; nullopt if there is none.
  std::optional<SlowRanks> drain() { return slow_among(times_.drain()); }

 private:
  using Times = Outcomes<std::int64_t>;  // times of all ranks; the step
  std::optional<SlowRanks> slow_among(const std::optional<Times::Outcome>& times);

  dist::Group& group_;
  core::RowSeconds seen_{};  // of this rank's ledger, up to the last exchange
  Times times_;
  int steps_ = 0;
  observe::Stragglers stragglers_;
};

}  // namespace scaletrain::train
