// Local SGD, DiLoCo and asynchronous local SGD: replicas train alone for some steps, each with its
// own optimizer, and then synchronize weights instead of gradients.
//
// periodic: all weights become the mean over the replicas (local SGD: Stich, "Local SGD converges
// fast and communicates little", ICLR 2019; McMahan et al., 2017).
//
// diloco: the change of the replicas since their last synchronization is the gradient of an outer
// optimizer, SGD with Nesterov momentum (Douillard et al., "DiLoCo: Distributed low-communication
// training of language models", 2023, algorithm 1):
//   delta = outer weights - mean over the replicas of their weights
//   momentum = mu momentum + delta
//   outer weights = outer weights - lr (delta + mu momentum), from which all replicas continue
// With several fragments each has steps of its own to synchronize at, evenly spread (Douillard et
// al., "Streaming DiLoCo with overlapping communication", 2025, section 2.2). With overlap (section
// 2.3) replicas train on during communication; then each continues from mix times its own weights
// plus 1 - mix times the outer ones. A replica sends its weights, or, in half the bytes, its
// change: outer weights - its weights, rounded to bf16 or fp16; delta is the mean of these.
//
// async: a mean too, but at times of each replica's own (lib/local_sgd/async_coordinator.h).
//
// DiLoCo replicas communicate by collectives, or if they are decoupled by rounds at rank 0's hub
// (lib/local_sgd/diloco_client.h), which tolerate the loss of a replica; the bits are equal.
//
// A replica may be a model-parallel group of several ranks: each synchronizes the shards that it
// owns with the ranks that own the same shards in other replicas.
//
// Optimizer states are not synchronized, as in these papers. After a synchronization weights have
// equal bits on all replicas; not with async, whose replicas synchronize at different times, and
// not with overlap, where the outer weights are equal instead.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/dist/mesh.h"
#include "lib/local_sgd/async_client.h"
#include "lib/local_sgd/diloco_client.h"
#include "lib/local_sgd/fragments.h"
#include "lib/recipe/sections/parallel/sync.h"
#include "lib/units/named_parameter.h"

namespace scaletrain::local_sgd {

class WeightSync {
 public:
  // `parameters`: owned by this rank, each in a fragment; `group`: the ranks that own the same
  // shards in all replicas; must outlive this object. `total_steps`: length of the training, which
  // ends with a full synchronization. `rounded_to`: DiLoCo sends changes in this dtype.
  WeightSync(const recipe::Sync& sync, const std::vector<units::NamedParameter>& parameters,
             const Fragments& fragments, dist::Group& group, std::int64_t total_steps,
             std::optional<at::ScalarType> rounded_to = std::nullopt);

  // Call once before start() if state() was filled from a checkpoint.
  void resume();
  // Call once before the first step, when all replicas have the same initial weights. Without
  // resume() these become the outer weights.
  void start();
  // Decouples the replicas (lib/recipe/apart.h), for async or DiLoCo. Call once after start(): then
  // no rank waits for a collective with another replica, and each replica is a job of its own.
  // `steps` of training are done; rank 0 is reached at `host`. Collective over `mesh`, which is
  // split into its replicas.
  void go_apart(std::int64_t steps, const std::string& host, dist::Mesh& mesh);

  // Call after step `step` of the training (from 0), also if its update was skipped.
  void after_step(std::int64_t step);
  // Synchronizes all weights that differ, before a stop. A decoupled replica leaves the others;
  // rank 0 asks them to stop too and waits at most `limit`. With rounds it leaves later, in
  // DilocoClient::leave(), and has waited before.
  void exchange_all(std::chrono::milliseconds limit = std::chrono::seconds(10));

  // True if a synchronization ends after `steps` steps; false once rounds have agreed on a step to
  // stop at.
  bool is_exchanged_after(std::int64_t steps) const;
  // True if the replicas' weights may differ now.
  bool differs() const;
  // True if weights differ even after a synchronization: with several fragments or overlap.
  bool always_differs() const { return sync_.fragments > 1 || sync_.overlap > 0; }
  // True if the replicas are decoupled.
  bool is_apart() const { return fellows_ || rounds_; }
  std::vector<ReplicaProgress> places() const;  // membership, known on rank 0 only
  // DilocoClient of decoupled DiLoCo replicas; otherwise nullptr.
  DilocoClient* rounds() const { return rounds_.get(); }
  // True if all shall stop: rank 0 has asked for it, or with rounds any replica has.
  bool shall_stop() const;
  // Bytes that this rank has sent so far.
  std::int64_t exchanged_bytes() const { return exchanged_bytes_; }

  // Outer state of DiLoCo by name, equal on all replicas: "outer_weights/PARAMETER" and
  // "outer_momentum/PARAMETER". Not copies: writing to them restores the state.
  std::map<std::string, at::Tensor> state() const;

 private:
  // An all-reduce of weights or changes that is under way.
  struct Sum {
    at::Tensor values;
    dist::Pending pending;
  };
  // Owned shards of the parameters of one message; perhaps empty, as all ranks have the same
  // messages.
  struct Part {
    std::int64_t fragment = 0;
    bool differs = false;
    std::vector<units::NamedParameter> parameters = {};
    at::Tensor outer = {}, momentum = {};  // DiLoCo only, flat
    std::optional<Sum> sum = {};           // under way, with overlap
  };
  // True if a synchronization of `part` begins after `steps` steps.
  bool is_due(const Part& part, std::int64_t steps) const;
  void exchange(const std::vector<Part*>& due);
  void exchange_in_rounds(const std::vector<Part*>& due);
  at::Tensor given(const Part& part) const;
  Sum begin_sum(const Part& part);
  at::Tensor mean_of(Sum sum);
  void end_overlap(Part& part);
  void go_on_from(Part& part, at::Tensor mean, double mix = 0);
  void leave(std::optional<std::chrono::milliseconds> limit);

  recipe::Sync sync_;
  dist::Group& group_;
  dist::Mesh* mesh_ = nullptr;  // decoupled replicas only
  std::int64_t total_steps_;
  std::optional<at::ScalarType> rounded_to_;
  std::vector<Part> parts_;
  std::unique_ptr<AsyncClient> fellows_;  // decoupled, async
  std::unique_ptr<DilocoClient> rounds_;  // decoupled, DiLoCo
  std::int64_t steps_ = 0;                // steps of training done
  bool has_resumed_ = false;
  std::int64_t exchanged_bytes_ = 0;
};

}  // namespace scaletrain::local_sgd
