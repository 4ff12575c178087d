// Replicas that train alone for some steps, with an optimizer each, and then exchange weights in
// place of gradients.
//
// periodic: all weights become the mean over the replicas (local SGD: Stich, "Local SGD converges
// fast and communicates little", ICLR 2019; McMahan et al., 2017).
//
// diloco: what the replicas have learned since their last exchange is one step of an outer
// optimizer, SGD with Nesterov momentum (Douillard et al., "DiLoCo: Distributed low-communication
// training of language models", 2023, algorithm 1):
//   delta = outer weights - mean over the replicas of their weights
//   momentum = mu momentum + delta
//   outer weights = outer weights - lr (delta + mu momentum), which all replicas go on from
// With several fragments each is exchanged at steps of its own, evenly spread (Douillard et al.,
// "Streaming DiLoCo with overlapping communication", 2025, section 2.2). With overlap (section 2.3)
// replicas go on while one is exchanged; then each goes on from mix of its own weights and 1 - mix
// of the outer ones. What a replica gives is its weights, or, in half the bytes, what it has
// learned: outer weights - its weights, rounded; delta is the mean of these.
//
// async: the mean too, but replicas come to it when they can (lib/parallel/sync/async_mean.h).
//
// Replicas of diloco exchange by collectives, or where they are apart in rounds at rank 0's hub
// (lib/parallel/sync/rounds.h), which go on without one that is lost; the bits are the same.
//
// A replica may be several ranks that hold its model together: each exchanges what it owns with
// those that own the same in the other replicas.
//
// The optimizers' states are not exchanged, as in these papers. The same weights have the same bits
// on all replicas after an exchange; not of async, as they exchange at other times, and not with
// overlap, as a share of their own stays: there the outer weights have.
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
#include "lib/parallel/sync/fellows.h"
#include "lib/parallel/sync/fragments.h"
#include "lib/parallel/sync/rounds.h"
#include "lib/recipe/sections/sync.h"
#include "lib/units/named_parameter.h"

namespace scaletrain::parallel {

class ReplicaSync {
 public:
  // `parameters`: what this rank owns of the model, with a fragment each; `group`: of each replica
  // the rank that owns the same, which outlives it. `total_steps`: of the training, whose end is an
  // exchange of all. `rounded_to`, of diloco: what it has learned is given, as this type.
  ReplicaSync(const recipe::Sync& sync, const std::vector<units::NamedParameter>& parameters,
              const Fragments& fragments, dist::Group& group, std::int64_t total_steps,
              std::optional<at::ScalarType> rounded_to = std::nullopt);

  // Once, before start(), where state() was filled from a checkpoint.
  void resume();
  // Once, before the first step, when all replicas have the weights that training begins with:
  // without resume() the outer weights are these.
  void start();
  // Once, behind start(), of replicas that are apart (lib/recipe/apart.h), of async or diloco: from
  // here on no rank waits for a collective, and the group's ranks are jobs of their own. `steps` of
  // training are done; rank 0 is reached at `host`. Every rank of `mesh`, whose replicas part,
  // calls it.
  void go_apart(std::int64_t steps, const std::string& host, dist::Mesh& mesh);

  // After step number `step` (from 0) of the training, which all ranks have taken or left out.
  void after_step(std::int64_t step);
  // What the replicas have not exchanged since they were the same: for a stop. Where they are apart
  // this one leaves the others, which rank 0 asks to stop too, and waits for at most `limit`; in
  // rounds it leaves later, and has waited before.
  void exchange_all(std::chrono::milliseconds limit = std::chrono::seconds(10));

  // Whether an exchange is over after so many steps, and no other is going on; not where all shall
  // stop at some step.
  bool is_exchanged_after(std::int64_t steps) const;
  // Whether the replicas' weights may differ.
  bool differs() const;
  // Whether they differ after exchanges too, as those of several fragments do, or with overlap.
  bool always_differs() const { return sync_.fragments > 1 || sync_.overlap > 0; }
  // Whether the replicas are apart, and who of them is still there.
  bool is_apart() const { return fellows_ || rounds_; }
  std::vector<ReplicaPlace> places() const;  // rank 0 knows them
  // Where they are apart and exchange at the same steps; otherwise nullptr.
  Rounds* rounds() const { return rounds_.get(); }
  // Whether all shall stop: rank 0 has asked the others, in rounds anyone has.
  bool shall_stop() const;
  // That this rank has given to exchanges so far.
  std::int64_t exchanged_bytes() const { return exchanged_bytes_; }

  // By name, the same on all ranks: "outer_weights/PARAMETER" and "outer_momentum/PARAMETER" of
  // diloco; its own tensors, so that copying into them restores it.
  std::map<std::string, at::Tensor> state() const;

 private:
  // What all replicas give, which collectives add up meanwhile.
  struct Sum {
    at::Tensor values;
    dist::Pending pending;
  };
  // What this rank owns of the parameters that travel in one message; perhaps nothing, so that all
  // ranks have the same messages.
  struct Part {
    std::int64_t fragment = 0;
    bool differs = false;
    std::vector<units::NamedParameter> parameters = {};
    at::Tensor outer = {}, momentum = {};  // of diloco, flat
    std::optional<Sum> sum = {};           // while training overlaps its exchange
  };
  // Whether its exchange begins after so many steps.
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
  dist::Mesh* mesh_ = nullptr;  // where the replicas are apart
  std::int64_t total_steps_;
  std::optional<at::ScalarType> rounded_to_;
  std::vector<Part> parts_;
  std::unique_ptr<Fellows> fellows_;  // of async, where the replicas are apart
  std::unique_ptr<Rounds> rounds_;    // of diloco
  std::int64_t steps_ = 0;            // of training, done
  bool has_resumed_ = false;
  std::int64_t exchanged_bytes_ = 0;
};

}  // namespace scaletrain::parallel
