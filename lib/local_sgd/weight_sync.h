// Local SGD and DiLoCo: replicas train alone for some steps, each with its own optimizer, and then
// synchronize weights instead of gradients.
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
// WeightSync communicates by collectives. Derived classes decouple the replicas: DiLoCo with equal
// bits (lib/local_sgd/decoupled_diloco.h) and asynchronous averaging
// (lib/local_sgd/async_replicas.h).
//
// A replica may be a model-parallel group of several ranks: each synchronizes the shards that it
// owns with the ranks that own the same shards in other replicas.
//
// Optimizer states are not synchronized, as in these papers. After a synchronization weights have
// equal bits on all replicas; not with async, whose replicas synchronize at different times, and
// not with overlap, where the outer weights are equal instead.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/core/process/beat.h"
#include "lib/dist/mesh.h"
#include "lib/local_sgd/fragments.h"
#include "lib/local_sgd/replicas.h"
#include "lib/recipe/sections/parallel/sync.h"
#include "lib/units/named_parameter.h"

namespace scaletrain::local_sgd {

struct LocalSgdOptions {
  recipe::Sync sync;
  std::int64_t total_steps = 0;  // length of the training, which ends with a full synchronization
  std::optional<at::ScalarType> rounded_to = std::nullopt;  // DiLoCo sends changes in this dtype
  bool decoupled = false;  // replicas share no collective (lib/recipe/apart.h)
  // For decoupled replicas:
  core::Beat beat = core::Beat();  // shows the launcher that a replica waits for others
  double grace_s = 30;             // seconds from a stop to a kill
  StateSource states = nullptr;    // replica-local states of this rank
};

class WeightSync : public Replicas {
 public:
  // `parameters`: owned by this rank, each in a fragment. `mesh` must outlive this object.
  WeightSync(LocalSgdOptions options, const std::vector<units::NamedParameter>& parameters,
             const Fragments& fragments, dist::Mesh& mesh);

  // "outer_weights/PARAMETER" and "outer_momentum/PARAMETER", equal on all replicas.
  units::Shards state() const override;
  void resume() override;
  // Without resume() the weights become the outer weights.
  void start() override;
  at::Tensor mean_norm(const at::Tensor& norm, const at::Tensor& squares) override;
  void after_step(std::int64_t step) override;
  bool is_synchronized() const override;
  bool weights_differ() const override;
  void stop() override;
  std::int64_t communicated_bytes() const override { return communicated_bytes_; }

 protected:
  // An all-reduce of weights or changes that is under way.
  struct Sum {
    at::Tensor values;
    dist::Pending pending;
  };
  // Owned shards of the parameters of one message; perhaps empty, as all ranks have the same
  // messages.
  struct Part {
    std::int64_t number = 0, fragment = 0;
    bool differs = false;
    std::vector<units::NamedParameter> parameters = {};
    at::Tensor outer = {}, momentum = {};  // DiLoCo only, flat
    at::Tensor global = {};                // async only: flat global weights, as last taken
    std::optional<Sum> sum = {};           // running all-reduce, with sync.overlap
  };
  using Parts = std::vector<Part*>;
  // Synchronizes these parts with the other replicas; may return before, if all shall stop.
  virtual void synchronize(const Parts& due);

  void count_step(std::int64_t step);  // all weights differ after it
  Parts differing_parts();
  at::Tensor weights_of(const Part& part) const;  // flat
  // Returns the tensor whose mean over the replicas continue_from() takes: weights, or their
  // change.
  at::Tensor contribution(const Part& part) const;
  // Continues from the mean over the replicas: DiLoCo takes an outer step. `mix`: share of the
  // replica's own weights that stays.
  void continue_from(Part& part, at::Tensor mean, double mix = 0);
  void set_weights(const Part& part, const at::Tensor& values, double mix = 0) const;

  LocalSgdOptions options_;
  dist::Mesh& mesh_;
  std::vector<Part> parts_;
  std::int64_t steps_ = 0;  // steps of training done
  std::int64_t communicated_bytes_ = 0;

 private:
  // True if a synchronization of `part` begins after `steps` steps.
  bool is_due(const Part& part, std::int64_t steps) const;
  Sum begin_sum(const Part& part);
  at::Tensor mean_of(Sum sum);
  void end_overlap(Part& part);

  dist::Group& group_;  // ranks that own the same shards in all replicas
  bool has_resumed_ = false;
};

}  // namespace scaletrain::local_sgd
