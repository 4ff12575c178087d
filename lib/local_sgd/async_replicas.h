// Asynchronous local SGD: decoupled replicas average weights with the coordinator at times of their
// own (lib/local_sgd/async_coordinator.h). Rank 0's stop stops all.
#pragma once

#include <chrono>
#include <optional>

#include "lib/local_sgd/decoupled.h"

namespace scaletrain::local_sgd {

class AsyncReplicas : public Decoupled {
 public:
  using Decoupled::Decoupled;

  void after_step(std::int64_t step) override;
  bool stop_requested() override { return stop_requested_; }
  void stop() override;

 private:
  std::unique_ptr<Coordinator> make_coordinator(HubRanks hub) const override;
  void join() override;
  void synchronize(const Parts& due) override;
  void leave(std::optional<std::chrono::milliseconds> limit);
  dist::HubMessage answer_to(std::int32_t kind);

  bool stop_requested_ = false;
};

}  // namespace scaletrain::local_sgd
