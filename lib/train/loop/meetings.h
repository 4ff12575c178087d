// Meetings of local-SGD replicas after their outer steps: to share the states that rank 0
// needs of each, for a stop, and at the end. For any other run each function does
// nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "lib/core/clock.h"
#include "lib/core/process/signals.h"
#include "lib/train/run/run.h"

namespace scaletrain::train {

class Meetings {
 public:
  // `grace_s`: from a stop to a kill. The run outlives it.
  Meetings(Run& run, double grace_s);

  // Before a step, where this rank has heard of `stop`: whether training is at its stop. Replicas
  // that meet in rounds all stop where one does, and `stop` becomes so; they train on to the step
  // of the furthest, but for no longer than a part of the grace period.
  bool is_at_stop(core::StopReason& stop);
  // After an outer step: sends rank 0 the states it needs to validate or save.
  void share(bool validates, bool saves);
  // For a stop: all that has not been exchanged is, and what a save needs is shared.
  void stop();
  // Training is over. Rank 0 waits until all others have come to that.
  void finish();

  // When a stop was heard of that took further steps; `now` where none was.
  core::SteadyTime stopped_since(core::SteadyTime now) const {
    return stopped_since_.value_or(now);
  }

 private:
  local_sgd::DilocoClient* rounds() const { return run_.sync ? run_.sync->rounds() : nullptr; }
  std::chrono::milliseconds limit() const;
  bool stop_is_asked() const;
  bool has_heard() const;  // true if this rank was asked to stop

  Run& run_;
  double grace_s_;
  bool any_has_heard_ = false;     // a stop request, agreed by the replica's ranks
  std::int64_t shared_step_ = -1;  // at which all was shared that a save needs
  std::optional<core::SteadyTime> stopped_since_;
};

}  // namespace scaletrain::train
