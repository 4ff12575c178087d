#include "launcher/agents/waiting.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace scaletrain::launcher {

std::string waiting_text(const Board& board, bool takes_part, const std::set<int>& fits,
                         const JobTerms& terms, const AgentTiming& timing) {
  if (board.phase == Phase::kJoining) return board.reason;
  if (board.phase != Phase::kRunning || takes_part) return "";
  const int nodes = board.nodes;
  const std::string runs = fmt::format("the job runs on {} nodes", nodes);
  if (nodes == terms.max_nodes) {
    return fmt::format("{}, without this one: --nnodes {} takes no more", runs, terms.nnodes);
  }
  if (!fits.contains(nodes + 1)) {
    return fmt::format(
        "{}, without this one: the batch does not divide among the ranks of {} nodes, but of {}",
        runs, nodes + 1, fmt::join(fits, ", "));
  }
  return fmt::format("{}; this one joins after the last call, {:g} s", runs,
                     std::chrono::duration<double>(timing.last_call).count());
}

}  // namespace scaletrain::launcher
