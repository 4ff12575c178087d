// Client of asynchronous local SGD: connects this rank to the coordinator on rank 0
// (lib/local_sgd/async_coordinator.h). The loss of any replica but rank 0's is tolerated.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/local_sgd/hub_connection.h"

namespace scaletrain::local_sgd {

class AsyncClient {
 public:
  // `parts`: flat shards that this rank owns of the weights, equal in all replicas; `staleness`:
  // synchronizations that a replica may be ahead of the slowest; `steps` of training are done.
  // Rank 0 opens the hub at `host`. Collective over `mesh`: it splits the replicas off as
  // independent jobs (Mesh::part_replicas).
  AsyncClient(std::int64_t staleness, std::vector<at::Tensor> parts, std::int64_t steps,
              dist::Mesh& mesh, const std::string& host);

  // Sends this replica's changes of these parts after `steps` steps and returns the new global
  // weights of each part, on the CPU. May wait for slower replicas. Throws core::StoppedError if
  // rank 0 is lost.
  std::vector<at::Tensor> synchronize(const std::map<std::int64_t, at::Tensor>& parts,
                                      std::int64_t steps);
  // Ends synchronization; `is_over`: training is over.
  void leave(bool is_over);
  // True if rank 0 has asked all replicas to stop.
  bool stop_requested() const { return stop_requested_; }

  // For rank 0 only:
  bool hosts() const { return hub_.hosts(); }
  void request_stop();
  // Waits until all others have left or are lost; false after `limit`. nullopt: no limit.
  bool await_all(std::optional<std::chrono::milliseconds> limit);
  void close();  // ignores later changes of other replicas
  // For the ranks of rank 0's replica: returns the global weights of a part.
  at::Tensor fetch(std::int64_t part);
  // Progress of the replicas; empty on other ranks than rank 0.
  std::vector<ReplicaProgress> membership() const {
    return hosts() ? hub_.membership->all() : std::vector<ReplicaProgress>();
  }

 private:
  void send_initial_parts();
  dist::HubMessage answer_to(std::int32_t kind);

  std::vector<at::Tensor> bases_;  // global weights that this replica took last
  HubConnection hub_;
  bool stop_requested_ = false;
};

}  // namespace scaletrain::local_sgd
