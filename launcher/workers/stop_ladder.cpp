#include "launcher/workers/stop_ladder.h"

namespace scaletrain::launcher {

void StopLadder::ask(core::SteadyTime now) {
  stopping_ = true;
  deadline_ = now + grace_;
}

bool StopLadder::kill(core::SteadyTime now) {
  if (killed_) return false;
  stopping_ = killed_ = true;
  deadline_ = now + kKillPatience;
  return true;
}

StopLadder::Step StopLadder::due(core::SteadyTime now) {
  if (!deadline_ || given_up_ || now < *deadline_) return Step::kNothing;
  if (!killed_) return Step::kKill;
  given_up_ = true;
  return Step::kGiveUp;
}

}  // namespace scaletrain::launcher
