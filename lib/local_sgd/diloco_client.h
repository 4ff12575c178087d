// Client of synchronous rounds: connects this rank to the hub on rank 0, where replicas synchronize
// at the same steps (lib/local_sgd/diloco_coordinator.h). The loss of any replica but rank 0's is
// tolerated. In a replica of several ranks each sends its shards; all make the same calls.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/core/clock.h"
#include "lib/dist/hub/hub.h"
#include "lib/dist/mesh.h"
#include "lib/local_sgd/hub_ranks.h"
#include "lib/local_sgd/membership.h"
#include "lib/local_sgd/received_tensors.h"

namespace scaletrain::local_sgd {

class DilocoClient {
 public:
  // `steps` of training are done; parts have dtype `type`. Rank 0 opens the hub at `host`.
  // Collective over `mesh`: it splits the replicas off as independent jobs (Mesh::part_replicas).
  DilocoClient(std::int64_t steps, dist::Mesh& mesh, const std::string& host,
               at::ScalarType type = at::kFloat);

  // Time that rank 0 waits for others after a stop; then it gives up those that it waits for.
  void set_stop_limit(std::chrono::milliseconds limit) { stop_limit_ = limit; }

  // The following throw core::StoppedError if rank 0 is lost. `steps`: number of steps done. If
  // this process is asked to stop (core::stop_reason) while it waits here, it asks all replicas to
  // stop.

  // Returns the mean of a flat part over the active replicas, in its dtype, on the CPU. All
  // replicas call it for the same parts in the same order. nullopt: the round was given up, as all
  // shall stop.
  std::optional<at::Tensor> mean_of(std::int64_t part, const at::Tensor& values,
                                    std::int64_t steps);
  // Ends a synchronization after all parts; waits for the others. False: given up.
  bool meet(std::int64_t steps);

  // True if a replica is known to want a stop; reads pending messages, sends none.
  bool stop_is_asked();
  // True if this replica has sent its step while it waited: it must not train further before
  // agree_on_stop().
  bool has_said_stop() const { return has_said_stop_; }
  // Call to stop, or if stop_is_asked(): returns the step of the furthest replica, to which all
  // train before their last synchronization.
  std::int64_t agree_on_stop(std::int64_t steps);
  // Result of agree_on_stop(); nullopt before.
  std::optional<std::int64_t> stops_at() const { return stops_at_; }

  // Call once after a synchronization. Rank 0's replica requests rank-local tensors of the others
  // by number `wish`; returns that number on all replicas, which ignore their own `wish`.
  std::int32_t agree_on_wish(std::int32_t wish);
  // In other replicas: sends the requested tensors to the same place in rank 0's replica.
  void give(const std::vector<at::Tensor>& own);
  // In rank 0's replica: waits for give() of the others and returns their tensors by replica, on
  // the CPU; [] for itself and for replicas that have not sent all, which are the same on all
  // ranks.
  std::vector<std::vector<at::Tensor>> take(const std::vector<at::Tensor>& own);

  // Ends synchronization; a second call does nothing. Rank 0 waits until the others have left or
  // are lost, at most `limit`; nullopt: no limit.
  void leave(std::optional<std::chrono::milliseconds> limit);
  std::vector<ReplicaProgress> places() const { return roll_->places(); }  // known on rank 0 only

 private:
  bool hosts() const { return hub_ != nullptr; }
  dist::HubMessage receive();
  dist::HubMessage answer_to(std::int32_t kind, std::int32_t other = 0);
  void say_stop();
  using Given = std::map<std::int32_t, std::vector<std::byte>>;  // keyed by number
  std::vector<Given> take_given();                               // one for each replica

  HubRanks ranks_of_hub_;
  int hub_rank_;
  std::shared_ptr<Membership> roll_;
  std::shared_ptr<ReceivedTensors> given_;
  std::unique_ptr<dist::Hub> hub_;  // rank 0 only
  std::unique_ptr<dist::HubLink> link_;
  std::int64_t steps_;
  std::int64_t round_ = 0;  // counts agree_on_wish()
  bool stop_is_asked_ = false, has_said_stop_ = false, has_left_ = false;
  std::optional<std::int64_t> stops_at_;
  std::chrono::milliseconds stop_limit_{10000};
  std::optional<core::SteadyTime> deadline_;  // rank 0 only, after a stop
};

}  // namespace scaletrain::local_sgd
