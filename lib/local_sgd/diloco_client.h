// Client of decoupled DiLoCo replicas: connects this rank to the coordinator on rank 0, where
// replicas synchronize at the same steps (lib/local_sgd/diloco_coordinator.h). The loss of any
// replica but rank 0's is tolerated. In a replica of several ranks each sends its shards; all make
// the same calls.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/core/clock.h"
#include "lib/local_sgd/hub_connection.h"

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
  // replicas call it for the same parts in the same order. nullopt: the synchronization was given
  // up, as all shall stop.
  std::optional<at::Tensor> mean_of(std::int64_t part, const at::Tensor& values,
                                    std::int64_t steps);
  // Ends a synchronization after all parts; waits for the others. False: given up.
  bool synchronize(std::int64_t steps);

  // True if a replica is known to want a stop; reads pending messages, sends none.
  bool stop_requested();
  // True if this replica has sent its step while it waited: it must not train further before
  // agree_on_stop().
  bool has_sent_stop() const { return has_sent_stop_; }
  // Call to stop, or if stop_requested(): returns the step of the furthest replica, to which all
  // train before their last synchronization.
  std::int64_t agree_on_stop(std::int64_t steps);
  // Result of agree_on_stop(); nullopt before.
  std::optional<std::int64_t> stop_step() const { return stop_step_; }

  // Call once after a synchronization. Rank 0's replica requests replica-local states of the others
  // by number `request`; returns that number on all replicas, which ignore their own `request`.
  std::int32_t agree_on_request(std::int32_t request);
  // In other replicas: sends the requested tensors to the same place in rank 0's replica.
  void send_states(const std::vector<at::Tensor>& own);
  // In rank 0's replica: waits for send_states() of the others and returns their tensors by
  // replica, on the CPU, shaped like `own`; [] for itself and for replicas that have not sent all,
  // which are the same on all ranks.
  std::vector<std::vector<at::Tensor>> receive_states(const std::vector<at::Tensor>& own);

  // Ends synchronization; a second call does nothing. Rank 0 waits until the others have left or
  // are lost, at most `limit`; nullopt: no limit.
  void leave(std::optional<std::chrono::milliseconds> limit);
  // Progress of the replicas; empty on other ranks than rank 0.
  std::vector<ReplicaProgress> membership() const {
    return hub_.hosts() ? hub_.membership->all() : std::vector<ReplicaProgress>();
  }

 private:
  dist::HubMessage receive();
  dist::HubMessage answer_to(std::int32_t kind, std::int32_t other = 0);
  void send_stop();

  HubConnection hub_;
  std::int64_t steps_;
  std::int64_t requests_ = 0;  // counts agree_on_request()
  bool stop_requested_ = false, has_sent_stop_ = false, has_left_ = false;
  std::optional<std::int64_t> stop_step_;
  std::chrono::milliseconds stop_limit_{10000};
  std::optional<core::SteadyTime> deadline_;  // rank 0 only, after a stop
};

}  // namespace scaletrain::local_sgd
