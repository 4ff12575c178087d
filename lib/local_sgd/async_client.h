// Client of asynchronous local SGD: connects this rank to the hub on rank 0, where replicas
// synchronize. The loss of any replica but rank 0's is tolerated.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/dist/hub/hub.h"
#include "lib/dist/mesh.h"
#include "lib/local_sgd/membership.h"
#include "lib/recipe/sections/parallel/sync.h"

namespace scaletrain::local_sgd {

class AsyncClient {
 public:
  // `parts`: flat shards that this rank owns of the weights, equal in all replicas; `steps` of
  // training are done. Rank 0 opens the hub at `host`. Collective over `mesh`: it splits the
  // replicas off as independent jobs (Mesh::part_replicas).
  AsyncClient(const recipe::Sync& sync, std::vector<at::Tensor> parts, std::int64_t steps,
              dist::Mesh& mesh, const std::string& host);

  // Sends this replica's changes of these parts after `steps` steps and returns the new global
  // weights of each part, on the CPU. May wait for slower replicas. Throws core::StoppedError if
  // rank 0 is lost.
  std::vector<at::Tensor> exchange(const std::map<std::int64_t, at::Tensor>& parts,
                                   std::int64_t steps);
  // Ends synchronization; `is_over`: training is over.
  void leave(bool is_over);
  // True if rank 0 has asked all replicas to stop.
  bool shall_stop() const { return shall_stop_; }

  // For rank 0 only:
  bool hosts() const { return hub_ != nullptr; }
  void stop_all();
  // Waits until all others have left or are lost; false after `limit`. nullopt: no limit.
  bool await_all(std::optional<std::chrono::milliseconds> limit);
  void close();  // ignores later changes of other replicas
  // For the ranks of rank 0's replica: returns the global weights of a part.
  at::Tensor fetch(std::int64_t part);
  std::vector<ReplicaProgress> places() const { return roll_->places(); }

 private:
  void give_bases();
  dist::HubMessage answer_to(std::int32_t kind);

  std::shared_ptr<Membership> roll_;
  std::unique_ptr<dist::Hub> hub_;  // rank 0 only
  std::unique_ptr<dist::HubLink> link_;
  std::vector<at::Tensor> bases_;  // global weights that this replica took last
  bool shall_stop_ = false;
};

}  // namespace scaletrain::local_sgd
