// How a model lies on the ranks of a mesh: what each rank owns, and what the ranks exchange while
// they train. Data parallelism (lib/parallel/data_parallel.h), parts for each rank of the shard
// axis (lib/parallel/sharded.h), stages of a pipeline (stage_parallel.h) and experts over ranks
// (expert_parallel.h) are those that there are.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/dist/mesh.h"
#include "lib/parallel/layout.h"
#include "lib/parallel/unit_hooks.h"
#include "lib/recipe/sections/compress.h"
#include "lib/units/named_parameter.h"

namespace scaletrain::parallel {

class Placement {
 public:
  virtual ~Placement() = default;

  // What this rank updates, in the model's order; optimizer state belongs to it. After a step's
  // last backward its gradients are the mean over the data coordinates, of replicas that train
  // alone over those of its replica.
  virtual const std::vector<units::NamedParameter>& owned() const = 0;
  // The parameters that are cut over ranks, trained or not, with what this rank has of each: for
  // the whole run the one place where that lies, perhaps no element. {}: every rank has all of all.
  virtual const std::vector<units::NamedParameter>& parts() const;

  // Called once, before the first step, when the parameters have the values that training begins
  // with, on all ranks alike. `saved`: layout() of a checkpoint taken on as many ranks, or empty.
  // From here on what is cut may be changed by parts() alone. Throws core::CheckpointError when
  // `saved` does not name each parameter once.
  virtual void start(const BucketLayout& saved) = 0;
  // After owned() or parts() were changed: the model has these values when it runs next. Every rank
  // calls it. Until the next backward's end or settle(), what it has begun may be under way: nobody
  // changes owned() or parts(), and all ranks run the same micro-step, or none.
  virtual void spread_ahead() {}
  virtual void settle() {}

  // What must be called around units; null: nothing.
  virtual UnitHooks* hooks() { return nullptr; }

  // Before a step, number `step` of the training (from 0).
  virtual void begin_step(std::int64_t /*step*/) {}
  // Before a step's first micro-step: takes the gradients away.
  virtual void zero_grad() = 0;
  // Before each micro-step's forward. `synchronize`: it is the last of its step, and gradients are
  // exchanged during its backward.
  virtual void begin_micro_step(bool synchronize) = 0;
  // The same before the first half of a backward, where a schedule computes gradients of weights
  // later: between begin_weights() and end_weights(), `last` of a step's.
  virtual void begin_inputs() { begin_micro_step(false); }
  virtual void begin_weights(bool /*last*/) {}
  virtual void end_weights() {}
  // Between forward and backward, with what backward starts from.
  virtual void prepare_backward(const at::Tensor& loss) = 0;
  // Behind a step's last backward: what was not exchanged during backward is now.
  virtual void exchange_rest() {}

  // After a step: `found_inf`, a 0-dim tensor on the device, is not 0 where it was left out. Only
  // queues work.
  virtual void end_step(const at::Tensor& /*found_inf*/) {}

  // Bytes of gradients, and of parameters that are gathered, that this rank has given to exchanges
  // so far.
  virtual std::int64_t exchanged_bytes() const { return 0; }
  // What this rank alone has, by name: the placement's own tensors, so that copying into them
  // restores it. Complete after start().
  virtual std::map<std::string, at::Tensor> own_state() { return {}; }

  // How gradients travel together, which a checkpoint keeps; empty where nothing does.
  virtual BucketLayout layout() const = 0;
};

// What each rank of the shard axis has a part of: the optimizer's state (ZeRO-1), the gradients too
// (ZeRO-2), the parameters too (ZeRO-3).
enum class ShardLevel { kOptimizer, kGradients, kParameters };

// What a placement knows of the model beside its parameters.
struct Sharding {
  ShardLevel level = ShardLevel::kParameters;
  std::vector<std::vector<std::string>> units = {};  // the names of their tensors
  std::vector<bool> runs = {};  // by unit, whether this rank runs it; empty: it runs all
  std::vector<units::NamedParameter> frozen = {};  // parameters that are not trained
  // Parameters that are gathered as bf16 from fp32 parts, at kParameters; from start() on the
  // model's are bf16. And whether gradients are added up as bf16.
  std::set<std::string> gathered_as_bf16 = {};
  bool reduces_as_bf16 = false;
  // Whether the parts of parameters lie in the host's memory, at kParameters.
  bool parts_on_host = false;
};

// What gradients go through between replicas.
struct GradientExchange {
  std::optional<recipe::Compress> compress = {};
  std::uint64_t seed = 0;  // of what it draws
  bool every_step = true;  // false: none between replicas (lib/parallel/sync/replica_sync.h)

  // The ranks that have the same part of the model, and add up its gradients, where nothing is
  // sharded; and of how many ranks gradients are the mean.
  dist::Group& ranks(const dist::Mesh& mesh) const {
    return every_step ? mesh.gradients() : mesh.gradients_of_model();
  }
  int count(const dist::Mesh& mesh) const {
    const core::MeshPlan& plan = mesh.plan();
    const int all = plan.size(core::kGradientAxes);
    return every_step ? all : all / plan.model_copies();
  }
  // The ones that own the same elements.
  dist::Group& copies(const dist::Mesh& mesh) const {
    return every_step ? mesh.copies() : mesh.copies_in_model();
  }
  // The ones that have the same experts.
  dist::Group& same_experts(const dist::Mesh& mesh) const {
    return every_step ? mesh.same_experts() : mesh.group(core::Axis::kContext);
  }
};

// `parameters`: the model's that are trained, whole, the same on all ranks; of a pipeline those of
// this rank's stages. The mesh outlives it.
std::unique_ptr<Placement> make_placement(std::vector<units::NamedParameter> parameters,
                                          const dist::Mesh& mesh, const Sharding& sharding = {},
                                          const GradientExchange& exchange = {});

}  // namespace scaletrain::parallel
