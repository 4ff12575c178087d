#include "lib/train/loop/meetings.h"

#include "lib/train/rules/any_rank.h"
#include "lib/train/state/replica_states.h"

namespace scaletrain::train {
namespace {

constexpr double kForReplicas = 0.3;  // share of the grace period for the last outer step
constexpr double kToFurthest = 0.2;   // share for steps up to the furthest replica

}  // namespace

Meetings::Meetings(Run& run, double grace_s) : run_(run), grace_s_(grace_s) {
  if (rounds() != nullptr) rounds()->set_stop_limit(limit());
}

std::chrono::milliseconds Meetings::limit() const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::duration<double>(kForReplicas * grace_s_));
}

// One rank of a replica hears of a stop before another: of several it is what they have agreed on,
// or what has ended an exchange of all of them.
bool Meetings::stop_is_asked() const {
  if (rounds() == nullptr) return false;
  if (run_.group->world_size() == 1) return has_heard();
  return any_has_heard_ || rounds()->stops_at();
}

bool Meetings::has_heard() const { return rounds()->stop_is_asked() || rounds()->has_said_stop(); }

bool Meetings::is_at_stop(core::StopReason& stop) {
  if (stop == core::StopReason::kNone && stop_is_asked()) stop = core::StopReason::kTerminate;
  if (rounds() == nullptr || stop == core::StopReason::kNone) {
    return stop != core::StopReason::kNone;
  }
  if (!stopped_since_) stopped_since_ = core::now();
  run_.beat.enter(core::Phase::kWaiting);
  const std::int64_t furthest = rounds()->agree_on_stop(run_.state.step);
  const bool is_late = core::seconds_since(*stopped_since_) > kToFurthest * grace_s_;
  return said_by_any(*run_.group, is_late || run_.state.step >= furthest, "whether to train on");
}

void Meetings::share(bool validates, bool saves) {
  if (rounds() == nullptr) return;
  run_.beat.enter(core::Phase::kWaiting);
  // A validated state may be the best so far and is then saved.
  const bool may_save = saves || (validates && run_.recipe.checkpoint.keep_best > 0);
  const Wish evaluates = validates ? Wish::kEvaluation : Wish::kNothing;
  share_states(run_, may_save ? Wish::kSave : evaluates);
  if (run_.group->world_size() > 1) {
    any_has_heard_ = said_by_any(*run_.group, has_heard(), "a stop that is asked for");
  }
  if (saves) shared_step_ = run_.state.step;
}

// Replicas that did not agree on a stop are all at the end, where they have exchanged and shared.
void Meetings::stop() {
  if (!run_.sync) return;
  run_.beat.enter(core::Phase::kWaiting);
  run_.sync->exchange_all(limit());
  run_.engine->weights_changed();
  if (rounds() == nullptr) return;
  if (rounds()->stops_at() && shared_step_ != run_.length.total_steps) {
    share(/*validates=*/false, /*saves=*/true);
  }
  rounds()->leave(limit());
}

void Meetings::finish() {
  if (rounds() == nullptr) return;
  run_.beat.enter(core::Phase::kWaiting);
  rounds()->leave(std::nullopt);
}

}  // namespace scaletrain::train
