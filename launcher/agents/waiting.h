// Log lines of a node that waits for a round.
#pragma once

#include <set>
#include <string>

#include "launcher/agents/records.h"
#include "launcher/agents/roster.h"
#include "launcher/flags/timing.h"

namespace scaletrain::launcher {

// Says what a round waits for, or why one goes on without this node (`takes_part` is false); "":
// nothing is to be logged. `fits` are the numbers of nodes on which the job can run.
std::string waiting_text(const Board& board, bool takes_part, const std::set<int>& fits,
                         const JobTerms& terms, const AgentTiming& timing);

}  // namespace scaletrain::launcher
