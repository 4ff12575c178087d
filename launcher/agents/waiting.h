// Log lines of nodes that wait for a round.
#pragma once

#include <set>
#include <string>

#include "launcher/agents/membership.h"
#include "launcher/agents/records.h"
#include "launcher/flags/timing.h"

namespace scaletrain::launcher {

// Returns what a round waits for, or why one continues without this node (`takes_part` is false);
// "": nothing to log. `fits`: numbers of nodes on which the job can run.
std::string waiting_text(const JobState& state, bool takes_part, const std::set<int>& fits,
                         const JobTerms& terms, const AgentTiming& timing);

// Returns what a leader waits for that could begin a round with `nodes` nodes (0: with none yet).
// `last`: the round of which it needs a quorum.
std::string awaited_text(const Membership& membership, const JobTerms& terms,
                         const AgentTiming& timing, const LastRound& last, int nodes);

// Returns which nodes did not join in time, and a remedy.
std::string late_nodes_text(const Membership& membership, const JobTerms& terms,
                            const AgentTiming& timing, const LastRound& last);

}  // namespace scaletrain::launcher
