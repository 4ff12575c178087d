#include "launcher/agents/state_publisher.h"

namespace scaletrain::launcher {

void StatePublisher::publish(const JobState& state) {
  store_.set("state", to_line(state));
  ++version_;
  has_announced_ = false;
}

void StatePublisher::send_heartbeat(core::SteadyTime now, std::chrono::milliseconds silence) {
  if (has_announced_ && now < next_heartbeat_) return;
  next_heartbeat_ = now + beat_every_;
  store_.set("leader_heartbeat",
             to_line(LeaderHeartbeat{
                 .count = ++leader_heartbeat_, .version = version_, .silence = silence}));
  has_announced_ = true;
}

}  // namespace scaletrain::launcher
