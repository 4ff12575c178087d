// Publishes the state of a job and the leader's own heartbeat in the store.
#pragma once

#include <chrono>
#include <cstdint>

#include "launcher/agents/key_store.h"
#include "launcher/agents/records.h"
#include "lib/core/clock.h"

namespace scaletrain::launcher {

class StatePublisher {
 public:
  // `store` must outlive this.
  StatePublisher(KeyStore& store, std::chrono::milliseconds beat_every, core::SteadyTime now)
      : store_(store), beat_every_(beat_every), next_heartbeat_(now) {}

  void publish(const JobState& state);

  // Sends a heartbeat if one is due or the state has changed since the last one. `silence` is the
  // time since the last heartbeat of any worker.
  void send_heartbeat(core::SteadyTime now, std::chrono::milliseconds silence);

 private:
  KeyStore& store_;
  std::chrono::milliseconds beat_every_;
  std::int64_t version_ = 0, leader_heartbeat_ = 0;
  bool has_announced_ = false;  // the current version
  core::SteadyTime next_heartbeat_;
};

}  // namespace scaletrain::launcher
