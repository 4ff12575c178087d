// Data-parallel replicas of the model: how they stay together, stop together and share state.
//
// The base class is synchronous data parallelism, where the gradient all-reduce of each step keeps
// all replicas equal: its functions do nothing. Local SGD, DiLoCo and asynchronous averaging are
// derived classes (lib/local_sgd/weight_sync.h); the training loop calls all of them alike.
//
// Decoupled replicas share no collective: each is a job of its own, and only the replica of rank 0
// validates, saves and reports.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/core/process/signals.h"
#include "lib/units/shard.h"

namespace scaletrain::local_sgd {

// Purpose for which rank 0's replica needs the states of the others.
enum class StateRequest : std::int32_t { kNothing, kEvaluation, kSave };

// Returns the replica-local tensors of this rank for a request, in the same order on all replicas.
using StateSource = std::function<std::vector<std::pair<std::string, at::Tensor>>(StateRequest)>;

// States of all replicas, which the ranks of rank 0's replica received from decoupled ones.
struct ReplicaStates {
  std::map<std::string, at::Tensor> tensors = {};  // [replicas, ...], on the host
  // Replicas that sent a state. Rows of the others are copies of rank 0's replica.
  std::vector<std::int64_t> present = {};

  bool empty() const { return present.empty(); }
};

// Progress of a decoupled replica.
struct ReplicaProgress {
  std::int64_t steps = 0;  // steps of training that the global weights include
  bool has_left = false;   // left after a request or the last step
  bool is_lost = false;    // ended without leaving
};

// Properties of a synchronization method that checkpoints and records depend on.
struct ReplicaTraits {
  // True for state that differs between replicas: a checkpoint stores it once for each replica.
  bool local_optimizer = false, local_loss_scale = false, local_weights = false;
  bool steps_alone = false;          // optimizer steps are not the same on all replicas
  bool has_outer_optimizer = false;  // state() has tensors, on ranks that own parameters
  bool leads = true;                 // this replica validates, saves and reports for all
  std::string evaluated_weights;     // "outer" or "mean" in records of evaluations
  std::optional<int>
      reported_replica;  // replica whose loss and gradients records show; all if unset
  std::string notice;    // shown at the start of training
};

class Replicas {
 public:
  Replicas() = default;
  virtual ~Replicas() = default;
  Replicas(const Replicas&) = delete;
  Replicas& operator=(const Replicas&) = delete;

  const ReplicaTraits& traits() const { return traits_; }
  // States received by the last share(); empty before, and on ranks of other replicas.
  const ReplicaStates& states() const { return states_; }
  void forget_states() { states_ = {}; }

  // Outer optimizer state by name. The tensors are not copies: writing to them restores the state.
  virtual units::Shards state() const { return {}; }
  // Call before start() if state() was restored from a checkpoint.
  virtual void resume() {}
  // Call once before the first step, when all replicas have the same initial weights.
  virtual void start() {}
  // Decouples the replicas if the method does so: calls `before`, then splits the mesh into
  // independent jobs. `steps` of training are done; `host` returns the address at which others
  // reach this rank. Collective, once.
  virtual void decouple(std::int64_t /*steps*/, const std::function<std::string()>& /*host*/,
                        const std::function<void()>& /*before*/ = nullptr) {}

  // Call before each step. `stop`: the stop request that this rank has received, if any; set if
  // another replica has requested a stop. False: training ends here. Replicas may train on to a
  // common step first.
  virtual bool before_step(core::StopReason& stop) { return stop == core::StopReason::kNone; }
  // Returns the gradient norm that is reported and that decides if a step is skipped. `norm` is
  // this replica's, the root of `squares`, which it may overwrite.
  virtual at::Tensor mean_norm(const at::Tensor& norm, const at::Tensor& /*squares*/) {
    return norm;
  }
  // Call after step `step` (from 0), also if its update was skipped.
  virtual void after_step(std::int64_t /*step*/) {}
  // True if a synchronization ended after the last step: training may validate and save now.
  virtual bool is_synchronized() const { return true; }
  // True if the replicas' weights may differ now.
  virtual bool weights_differ() const { return false; }
  // Call once after a synchronization: fills states() of rank 0's replica, whose `request` counts.
  // Collective over the live replicas.
  virtual void share(StateRequest /*request*/) {}

  // True if another replica is known to want a stop.
  virtual bool stop_requested() { return false; }
  // Ends training early: synchronizes all weights that differ, shares the states for a save and
  // leaves the other replicas, all within a part of the grace period.
  virtual void stop() {}
  // Ends training after its last step; rank 0 waits until all others have.
  virtual void finish() {}

  // Progress of each replica; empty unless they are decoupled and this is rank 0.
  virtual std::vector<ReplicaProgress> membership() const { return {}; }
  // Bytes of weights that this rank has sent so far.
  virtual std::int64_t communicated_bytes() const { return 0; }

 protected:
  ReplicaTraits traits_;
  ReplicaStates states_;
};

}  // namespace scaletrain::local_sgd
