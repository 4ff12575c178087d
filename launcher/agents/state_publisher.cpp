#include "launcher/agents/state_publisher.h"

namespace scaletrain::launcher {

void StatePublisher::publish(const Board& board) {
  store_.set("board", to_line(board));
  ++version_;
  has_announced_ = false;
}

void StatePublisher::give_pulse(core::SteadyTime now, std::chrono::milliseconds silence) {
  if (has_announced_ && now < next_pulse_) return;
  next_pulse_ = now + beat_every_;
  store_.set("pulse", to_line(Pulse{.count = ++pulse_, .version = version_, .silence = silence}));
  has_announced_ = true;
}

}  // namespace scaletrain::launcher
