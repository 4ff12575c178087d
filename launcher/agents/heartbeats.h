// Heartbeats of the agents that have joined a leader.
#pragma once

#include <chrono>
#include <vector>

#include "launcher/agents/key_store.h"
#include "launcher/agents/membership.h"
#include "lib/core/clock.h"

namespace scaletrain::launcher {

// Reads the heartbeats of all agents that are not lost. Returns those that have sent none for
// `lost_after`.
std::vector<Peer*> read_heartbeats(KeyStore& store, Membership& membership,
                                   std::chrono::milliseconds lost_after, core::SteadyTime now);

}  // namespace scaletrain::launcher
