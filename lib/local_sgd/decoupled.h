// Base of decoupled replicas: they share no collective, but synchronize through the coordinator on
// rank 0 (lib/local_sgd/coordinator.h). The loss of any replica but rank 0's is tolerated. In a
// replica of several ranks each rank sends its shards, and all make the same calls.
#pragma once

#include <memory>

#include "lib/core/process/time_ledger.h"
#include "lib/dist/hub/hub.h"
#include "lib/local_sgd/coordinator.h"
#include "lib/local_sgd/weight_sync.h"

namespace scaletrain::local_sgd {

class Decoupled : public WeightSync {
 public:
  using WeightSync::WeightSync;

  // Rank 0 opens the hub. Later calls throw core::StoppedError if rank 0 is lost.
  void decouple(std::int64_t steps, const std::function<std::string()>& host,
                const std::function<void()>& before = nullptr) override;
  std::vector<ReplicaProgress> membership() const override {
    return hosts() ? coordinator_->progress() : std::vector<ReplicaProgress>();
  }

 protected:
  // Shows the launcher and the time ledger that a decoupled replica waits: no collective does.
  class Waiting {
   public:
    explicit Waiting(core::Beat& beat) : beat_(beat) { beat_.enter(core::Phase::kWaiting); }
    ~Waiting() { beat_.enter(core::Phase::kCompute); }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    core::Beat& beat_;
    core::TimeScope time_{core::TimeRow::kCommunication};
  };

  virtual std::unique_ptr<Coordinator> make_coordinator(HubRanks hub) const = 0;
  // Called once connected, while the ranks still share collectives.
  virtual void join() {}

  bool hosts() const { return hub_ != nullptr; }  // true on rank 0
  // Time that rank 0 waits for others at a stop; the rest of the grace period is for the save.
  std::chrono::milliseconds stop_limit() const {
    return std::chrono::milliseconds(static_cast<std::int64_t>(0.3 * 1000 * options_.grace_s));
  }

 private:
  std::unique_ptr<dist::Hub> hub_;            // rank 0 only
  const Coordinator* coordinator_ = nullptr;  // in the hub

 protected:
  std::unique_ptr<dist::HubLink> link_;  // ends before the hub
};

}  // namespace scaletrain::local_sgd
