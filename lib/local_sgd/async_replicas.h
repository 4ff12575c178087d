// Asynchronous local SGD: decoupled replicas average weights with the coordinator on rank 0 at
// times of their own (lib/local_sgd/async_coordinator.h). The loss of any replica but rank 0's is
// tolerated; rank 0's stop stops all.
#pragma once

#include <chrono>
#include <optional>

#include "lib/local_sgd/async_client.h"
#include "lib/local_sgd/weight_sync.h"

namespace scaletrain::local_sgd {

class AsyncReplicas : public WeightSync {
 public:
  // Arguments as for WeightSync.
  AsyncReplicas(LocalSgdOptions options, const std::vector<units::NamedParameter>& parameters,
                const Fragments& fragments, dist::Mesh& mesh);

  void decouple(std::int64_t steps, const std::function<std::string()>& host,
                const std::function<void()>& before = nullptr) override;
  void after_step(std::int64_t step) override;
  bool stop_requested() override { return client_->stop_requested(); }
  void stop() override;
  std::vector<ReplicaProgress> membership() const override { return client_->membership(); }

 private:
  void synchronize(const Parts& due) override;
  void leave(std::optional<std::chrono::milliseconds> limit);

  std::optional<AsyncClient> client_;  // after decouple()
};

}  // namespace scaletrain::local_sgd
