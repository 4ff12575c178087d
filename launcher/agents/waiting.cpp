#include "launcher/agents/waiting.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace scaletrain::launcher {
namespace {

double in_seconds(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

std::string missing_text(const Membership& membership, const JobTerms& terms,
                         const LastRound& last) {
  if (!membership.has_quorum(last)) {
    return fmt::format("; more than half of the {} nodes of the last round must come", last.nodes);
  }
  if (terms.fixed_ranks) return "; missing: " + membership.missing_nodes();
  if (membership.present() < terms.min_nodes) return "";
  return fmt::format("; the batch does not divide among the ranks of {} nodes",
                     membership.present());
}

}  // namespace

std::string waiting_text(const JobState& state, bool takes_part, const std::set<int>& fits,
                         const JobTerms& terms, const AgentTiming& timing) {
  if (state.phase == Phase::kJoining) return state.reason;
  if (state.phase != Phase::kRunning || takes_part) return "";
  const int nodes = state.nodes;
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
                     in_seconds(timing.last_call));
}

std::string awaited_text(const Membership& membership, const JobTerms& terms,
                         const AgentTiming& timing, const LastRound& last, int nodes) {
  const std::string text =
      fmt::format("waiting: {} of {} nodes are here", membership.present(), terms.nnodes);
  if (nodes == 0) return text + missing_text(membership, terms, last);
  return text + fmt::format("; the last call for more is {:g} s", in_seconds(timing.last_call));
}

std::string late_nodes_text(const Membership& membership, const JobTerms& terms,
                            const AgentTiming& timing, const LastRound& last) {
  return fmt::format(
      "rendezvous: {} of {} nodes came within {:g} s{}\n  look at the launchers of the missing "
      "nodes, and check that every node was started with the same --nnodes and address",
      membership.present(), terms.nnodes, in_seconds(timing.join_timeout),
      missing_text(membership, terms, last));
}

}  // namespace scaletrain::launcher
