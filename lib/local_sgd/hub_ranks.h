// Numbering of ranks at the coordinator's hub: all ranks of replica 0, then those of replica 1, ...
#pragma once

#include "lib/core/plan/mesh_plan.h"

namespace scaletrain::local_sgd {

// Ranks at the same place in their replicas own the same shards of the model.
struct HubRanks {
  int replicas = 1;
  int places = 1;  // ranks of each replica

  int count() const { return replicas * places; }
  int rank(int replica, int place) const { return replica * places + place; }
  int replica(int rank) const { return rank / places; }
  int place(int rank) const { return rank % places; }
};

inline HubRanks hub_ranks(const core::MeshPlan& plan) {
  const int replicas = plan.model_copies();
  return {.replicas = replicas, .places = plan.world_size() / replicas};
}
// Returns the number at the hub of a rank of the job.
inline int hub_rank(const core::MeshPlan& plan, int rank) {
  return hub_ranks(plan).rank(plan.replica(rank), plan.place(rank));
}

}  // namespace scaletrain::local_sgd
