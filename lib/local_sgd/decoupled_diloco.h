// Decoupled DiLoCo: replicas synchronize at the same steps through the coordinator on rank 0
// (lib/local_sgd/diloco_coordinator.h), with the bits of collectives. The loss of any replica but
// rank 0's is tolerated, and all stop at the step of the furthest replica.
#pragma once

#include <optional>

#include "lib/core/clock.h"
#include "lib/local_sgd/diloco_client.h"
#include "lib/local_sgd/weight_sync.h"

namespace scaletrain::local_sgd {

class DecoupledDiloco : public WeightSync {
 public:
  // Arguments as for WeightSync; options.states is required.
  DecoupledDiloco(LocalSgdOptions options, const std::vector<units::NamedParameter>& parameters,
                  const Fragments& fragments, dist::Mesh& mesh);

  void decouple(std::int64_t steps, const std::function<std::string()>& host,
                const std::function<void()>& before = nullptr) override;
  // Replicas train on to the furthest replica's step, for at most a part of the grace period.
  bool before_step(core::StopReason& stop) override;
  void after_step(std::int64_t step) override;
  // False from the agreement on a stop to the last synchronization.
  bool is_synchronized() const override;
  void share(StateRequest request) override;
  bool stop_requested() override { return client_->stop_requested(); }
  void stop() override;
  void finish() override;
  std::vector<ReplicaProgress> membership() const override { return client_->membership(); }

 private:
  void synchronize(const Parts& due) override;
  void share_states(StateRequest request);
  bool knows_stop();

  std::optional<DilocoClient> client_;  // after decouple()
  bool any_rank_knows_stop_ = false;    // agreed by the replica's ranks after a synchronization
  std::int64_t saved_step_ = -1;        // at which the states for a save were shared
  std::optional<core::SteadyTime> stopping_since_;
};

}  // namespace scaletrain::local_sgd
