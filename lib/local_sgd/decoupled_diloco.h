// Decoupled DiLoCo: replicas synchronize at the same steps through the coordinator
// (lib/local_sgd/diloco_coordinator.h), with the bits of collectives, and all stop at the step of
// the furthest replica. A process that is asked to stop (core::stop_reason) while it waits for
// others asks all replicas to stop.
#pragma once

#include <chrono>
#include <deque>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/core/clock.h"
#include "lib/local_sgd/decoupled.h"

namespace scaletrain::local_sgd {

class DecoupledDiloco : public Decoupled {
 public:
  using Decoupled::Decoupled;  // options.states is required

  // Replicas train on to the furthest replica's step, for at most a part of the grace period.
  bool before_step(core::StopReason& stop) override;
  void after_step(std::int64_t step) override;
  // False from the agreement on a stop to the last synchronization.
  bool is_synchronized() const override;
  void share(StateRequest request) override;
  // Reads pending messages, sends none.
  bool stop_requested() override;
  void stop() override;
  void finish() override;

 private:
  using NamedStates = std::vector<std::pair<std::string, at::Tensor>>;

  std::unique_ptr<Coordinator> make_coordinator(HubRanks hub) const override;
  void synchronize(const Parts& due) override;
  bool knows_stop() { return stop_requested() || has_sent_stop_; }
  void send_stop();
  StateRequest agree_on_request(StateRequest request);
  void send_states(const NamedStates& own);
  void receive_states(const NamedStates& own);
  void leave(std::optional<std::chrono::milliseconds> limit);

  void note(const dist::HubMessage& message);
  dist::HubMessage receive();
  // Waits for a message of one of these kinds, and notes those before it.
  dist::HubMessage await(std::initializer_list<std::int32_t> kinds);

  bool stop_requested_ = false;  // another replica is known to stop
  bool has_sent_stop_ =
      false;  // this rank has sent kStop: it trains on only when stop_step_ is known
  bool any_rank_knows_stop_ = false;  // agreed by the replica's ranks after a synchronization
  std::optional<std::int64_t>
      stop_step_;  // step of the furthest replica, when all have agreed on it
  std::optional<core::SteadyTime> stopping_since_;
  std::optional<core::SteadyTime>
      deadline_;  // on rank 0, during a stop: time at which it stops waiting for other replicas
  std::deque<std::int32_t> requests_;  // rank 0's state requests that share() has not handled yet
  std::int64_t saved_step_ = -1;       // step at which states for a save were last shared
  bool has_left_ = false;
};

}  // namespace scaletrain::local_sgd
