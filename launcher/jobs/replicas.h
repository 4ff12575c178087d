// Decides which replicas a job tolerates losing: decoupled ones (lib/recipe/apart.h).
#pragma once

#include <mutex>
#include <optional>
#include <vector>

#include "launcher/agents/lost_replicas.h"
#include "launcher/place/placement.h"
#include "launcher/workers/hang_watch.h"
#include "lib/core/plan/mesh_plan.h"

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::launcher {

// Exit status of a job that finished with fewer replicas than it had: done, but not as requested.
inline constexpr int kFewerReplicas = 77;

// Last known state of a worker that has ended.
struct LastSeen {
  std::int64_t step = 0;     // step it was in; 0: it had begun none
  bool has_verdict = false;  // it has reported its reason
  bool lost_rank_0 = false;  // its verdict names the loss of rank 0
};

class Replicas {
 public:
  // `recipe` outlives this.
  explicit Replicas(const recipe::Recipe& recipe) : recipe_(recipe) {}

  // Call at the start of an attempt, with all replicas.
  void begin(const Placement& placement);

  // Independent job that a rank belongs to: its replica if replicas are decoupled; otherwise 0.
  int job_of(int rank) const { return are_decoupled() ? of(rank) : 0; }
  int of(int rank) const { return mesh_.replica(rank); }
  int count() const { return mesh_.model_copies(); }

  // True if the job tolerates the loss of this worker. False for rank 0's replica, which
  // coordinates, and before training, when all ranks wait for each other. A signal stops one async
  // replica or all diloco replicas.
  bool tolerates_loss(const WorkerEnd& end, const LastSeen& seen) const;
  // Returns the local ranks that are evicted with it; {} if a signal stopped it, since they then
  // exit by themselves.
  std::vector<int> evicted_with(const WorkerEnd& end, const LastSeen& seen) const;

  // Records the loss of a local worker of `plans`; `hang`: the hang for which it was killed. Logs
  // it, and returns the message for other nodes; nullopt if its replica is known to be lost.
  std::optional<LostReplica> note_own_loss(const WorkerEnd& end,
                                           const std::vector<WorkerPlan>& plans,
                                           const std::optional<Hang>& hang, const LastSeen& seen);
  // Takes the replicas lost so far on all nodes and logs the new ones. Returns the ranks of this
  // node that are evicted with them.
  std::vector<int> note_losses(const std::vector<LostReplica>& lost);
  const LostReplicas& lost() const { return lost_; }

  // Call when a local worker has started training: replicas are then decoupled.
  void train();
  // Returns the replicas that are lost with a node of the job; {}: the other nodes cannot continue.
  // May be called by another thread.
  std::vector<int> on_node(int node) const;

 private:
  bool are_decoupled() const;
  std::vector<int> ranks_of(const std::vector<int>& replicas) const;
  std::vector<int> here(std::vector<int> ranks) const;
  void log_lost(const Failure& failure, const std::vector<int>& replicas) const;

  const recipe::Recipe& recipe_;
  LostReplicas lost_;
  mutable std::mutex mutex_;  // guards the members below, which only begin() and train() change
  Placement placement_;
  core::MeshPlan mesh_{1};
  bool train_ = false;
};

}  // namespace scaletrain::launcher
