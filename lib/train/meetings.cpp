#include "lib/train/meetings.h"

#include "lib/train/replica_states.h"

namespace scaletrain::train {
namespace {

constexpr double kForReplicas = 0.3;  // of the grace period: for their last exchange
constexpr double kToFurthest = 0.2;   // of it: for steps up to that of the replica that is furthest

}  // namespace

Meetings::Meetings(Run& run, double grace_s) : run_(run), grace_s_(grace_s) {
  if (rounds() != nullptr) rounds()->set_stop_limit(limit());
}

std::chrono::milliseconds Meetings::limit() const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::duration<double>(kForReplicas * grace_s_));
}

bool Meetings::is_at_stop(core::StopReason& stop) {
  const bool is_asked = rounds() != nullptr && rounds()->stop_is_asked();
  if (is_asked && stop == core::StopReason::kNone) stop = core::StopReason::kTerminate;
  if (rounds() == nullptr || stop == core::StopReason::kNone) {
    return stop != core::StopReason::kNone;
  }
  if (!stopped_since_) stopped_since_ = core::now();
  run_.beat.enter(core::Phase::kWaiting);
  const std::int64_t furthest = rounds()->agree_on_stop(run_.state.step);
  return run_.state.step >= furthest ||
         core::seconds_since(*stopped_since_) > kToFurthest * grace_s_;
}

void Meetings::share(bool validates, bool saves) {
  if (rounds() == nullptr) return;
  run_.beat.enter(core::Phase::kWaiting);
  // What is validated may be the best, and is saved then.
  const bool may_save = saves || (validates && run_.recipe.checkpoint.keep_best > 0);
  const Wish evaluates = validates ? Wish::kEvaluation : Wish::kNothing;
  share_states(run_, may_save ? Wish::kSave : evaluates);
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
