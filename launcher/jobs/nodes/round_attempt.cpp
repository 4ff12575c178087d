#include "launcher/jobs/nodes/round_attempt.h"

#include <algorithm>

namespace scaletrain::launcher {

Attempt round_attempt(const Session::View& view, const Placement& placement,
                      const std::string& found_at, int max_restarts) {
  Attempt attempt{.placement = placement,
                  .restart = view.board.restart,
                  .max_restarts = max_restarts,
                  .first = view.board.round == 1,
                  .plan = view.board.plan,
                  .one_host = view.board.one_host};
  attempt.replicas = view.board.replicas;
  attempt.launchers_here =
      static_cast<int>(std::ranges::count(view.board.candidates, host_name(), &Candidate::host));
  attempt.placement.nnodes = view.board.nodes;
  attempt.placement.node_rank = *view.rank;
  attempt.placement.master_addr = placement.fixed_ranks ? placement.master_addr : found_at;
  if (!view.board.store_host.empty()) attempt.placement.master_addr = view.board.store_host;
  attempt.placement.master_port = view.board.store_port;
  return attempt;
}

}  // namespace scaletrain::launcher
