// The other replicas, which this one meets at rank 0's hub: any but that one's may be lost.
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
#include "lib/parallel/sync/replica_roll.h"
#include "lib/recipe/sections/sync.h"

namespace scaletrain::parallel {

class Fellows {
 public:
  // `parts`: of the weights that all replicas have what this rank owns, flat; `steps` of training
  // are done. Rank 0 opens the hub at `host`. Every rank of `mesh` calls it at once, and each
  // replica is a job of its own from then on (Mesh::part_replicas).
  Fellows(const recipe::Sync& sync, std::vector<at::Tensor> parts, std::int64_t steps,
          dist::Mesh& mesh, const std::string& host);

  // Gives the hub what this replica has made of these parts by so many steps, and takes what it
  // goes on from, of each, on the host. May wait for slower replicas. Throws core::StoppedError
  // where rank 0 is lost.
  std::vector<at::Tensor> exchange(const std::map<std::int64_t, at::Tensor>& parts,
                                   std::int64_t steps);
  // Comes to no further exchange; `is_over`: as training is over.
  void leave(bool is_over);
  // Whether rank 0 has said that all shall stop.
  bool shall_stop() const { return shall_stop_; }

  // The following are for rank 0.
  bool hosts() const { return hub_ != nullptr; }
  void stop_all();
  // Waits until all others have left or are lost; false: not within that time. nullopt: for ever.
  bool await_all(std::optional<std::chrono::milliseconds> limit);
  void close();  // what others learn from here on counts no more
  // For the ranks of its replica: a part as all together have made it.
  at::Tensor fetch(std::int64_t part);
  std::vector<ReplicaPlace> places() const { return roll_->places(); }

 private:
  void give_bases();
  dist::HubMessage answer_to(std::int32_t kind);

  std::shared_ptr<ReplicaRoll> roll_;
  std::unique_ptr<dist::Hub> hub_;  // of rank 0
  std::unique_ptr<dist::HubLink> link_;
  std::vector<at::Tensor> bases_;  // of the parts, that this replica took last
  bool shall_stop_ = false;
};

}  // namespace scaletrain::parallel
