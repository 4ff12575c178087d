// The other replicas, which this one meets at rank 0's hub at the same steps, for the mean of all
// (lib/parallel/sync/round_mean.h): any but rank 0's may be lost. Each rank of a replica of several
// comes to them for what it owns; all of its ranks make the same calls.
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
#include "lib/parallel/sync/given_tensors.h"
#include "lib/parallel/sync/replica_roll.h"
#include "lib/parallel/sync/seats.h"

namespace scaletrain::parallel {

class Rounds {
 public:
  // `steps` of training are done; parts are of `type`. Rank 0 opens the hub at `host`. Every rank
  // of `mesh` calls it at once, and each replica is a job of its own from then on
  // (Mesh::part_replicas).
  Rounds(std::int64_t steps, dist::Mesh& mesh, const std::string& host,
         at::ScalarType type = at::kFloat);

  // How long rank 0 waits for others from a stop on; then it goes on without whom it waits for.
  void set_stop_limit(std::chrono::milliseconds limit) { stop_limit_ = limit; }

  // The following throw core::StoppedError where rank 0 is lost. `steps`: that are done. A stop
  // that comes while this replica waits in any of them (core::stop_reason) is one that it wants.

  // The mean over the replicas that are there of a flat part, of the same type; on the host.
  // All of them call it for the same parts in the same order. nullopt: the exchange is given up, as
  // all shall stop.
  std::optional<at::Tensor> mean_of(std::int64_t part, const at::Tensor& values,
                                    std::int64_t steps);
  // Ends an exchange, to which this replica has given all; waits for the others. False: given up.
  bool meet(std::int64_t steps);

  // Whether a replica wants all to stop, as far as this rank has heard; asks nobody.
  bool stop_is_asked();
  // Whether this one has said at which step it is, where it waited: it trains no further before
  // agree_on_stop().
  bool has_said_stop() const { return has_said_stop_; }
  // This one wants that, or has heard it: the step of the furthest, to which all shall train before
  // their last exchange.
  std::int64_t agree_on_stop(std::int64_t steps);
  // What it came to; nullopt before.
  std::optional<std::int64_t> stops_at() const { return stops_at_; }

  // Behind an exchange, each replica once: which tensors of their own rank 0 wishes for, in its
  // replica `wish`, what it says in others.
  std::int32_t agree_on_wish(std::int32_t wish);
  // The others give them to those at their place in rank 0's replica,
  void give(const std::vector<at::Tensor>& own);
  // which wait for them: by replica, in that order, those of each that has given them, on the
  // host; its own and those of others are []. The same replicas on all ranks.
  std::vector<std::vector<at::Tensor>> take(const std::vector<at::Tensor>& own);

  // Comes to no further exchange; once, a second call does nothing. Rank 0 waits until the others
  // have left or are lost, for `limit` at most where there is one.
  void leave(std::optional<std::chrono::milliseconds> limit);
  std::vector<ReplicaPlace> places() const { return roll_->places(); }  // rank 0 knows them

 private:
  bool hosts() const { return hub_ != nullptr; }
  dist::HubMessage receive();
  dist::HubMessage answer_to(std::int32_t kind, std::int32_t other = 0);
  void say_stop();
  using Given = std::map<std::int32_t, std::vector<std::byte>>;  // by number
  std::vector<Given> take_given();                               // by replica

  Seats seats_;
  int seat_;
  std::shared_ptr<ReplicaRoll> roll_;
  std::shared_ptr<GivenTensors> given_;
  std::unique_ptr<dist::Hub> hub_;  // of rank 0
  std::unique_ptr<dist::HubLink> link_;
  std::int64_t steps_;
  std::int64_t round_ = 0;  // of wishes
  bool stop_is_asked_ = false, has_said_stop_ = false, has_left_ = false;
  std::optional<std::int64_t> stops_at_;
  std::chrono::milliseconds stop_limit_{10000};
  std::optional<core::SteadyTime> deadline_;  // of rank 0, from a stop on
};

}  // namespace scaletrain::parallel
