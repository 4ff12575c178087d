#include "launcher/jobs/nodes/round_attempt.h"

#include <algorithm>

namespace scaletrain::launcher {

Attempt round_attempt(const Session::View& view, const Placement& placement,
                      const std::string& found_at, int max_restarts) {
  Attempt attempt{.placement = placement,
                  .restart = view.state.restart,
                  .max_restarts = max_restarts,
                  .first = view.state.round == 1,
                  .plan = view.state.plan,
                  .one_host = view.state.one_host};
  attempt.replicas = view.state.replicas;
  attempt.launchers_here =
      static_cast<int>(std::ranges::count(view.state.candidates, host_name(), &Candidate::host));
  attempt.placement.nnodes = view.state.nodes;
  attempt.placement.node_rank = *view.rank;
  attempt.placement.master_addr = placement.fixed_ranks ? placement.master_addr : found_at;
  if (!view.state.store_host.empty()) attempt.placement.master_addr = view.state.store_host;
  attempt.placement.master_port = view.state.store_port;
  return attempt;
}

}  // namespace scaletrain::launcher
