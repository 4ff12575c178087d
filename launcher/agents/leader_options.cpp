#include "launcher/agents/leader_options.h"

#include <algorithm>

namespace scaletrain::launcher {

int LeaderOptions::nodes_that_fit(int most) const {
  for (int nodes = std::min(most, terms.max_nodes); nodes >= terms.min_nodes; --nodes) {
    if (fits(nodes)) return nodes;
  }
  return 0;
}

}  // namespace scaletrain::launcher
