// Parallel strategy: defines which parameters each rank owns and which collectives training needs.
// Strategies: data parallel (lib/parallel/data_parallel.h), sharded over the shard axis (ZeRO,
// FSDP; lib/parallel/sharded.h), pipeline stages (stage_parallel.h), experts (expert_parallel.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/core/plan/gradient_memory.h"
#include "lib/dist/mesh.h"
#include "lib/parallel/layout.h"
#include "lib/parallel/unit_hooks.h"
#include "lib/recipe/sections/parallel/compress.h"
#include "lib/units/named_parameter.h"

namespace scaletrain::parallel {

class Placement {
 public:
  virtual ~Placement() = default;

  // Parameters, or shards of them, that this rank updates, in the model's order; the optimizer's
  // state is kept for these. After a step's last backward their gradients are the mean over all
  // data-parallel ranks, or with local SGD over those of this rank's replica.
  virtual const std::vector<units::NamedParameter>& owned() const = 0;
  // Local shards of the sharded parameters, trained or frozen, perhaps without elements; valid for
  // the whole run. Returns {} if every rank holds all parameters in full.
  virtual const std::vector<units::NamedParameter>& sharded_parameters() const;

  // Call once, before the first step, when all ranks have the same initial parameters. `saved`:
  // layout() of a checkpoint taken on as many ranks, or empty. After this call sharded parameters
  // may be changed only through sharded_parameters(). Throws core::CheckpointError unless `saved`
  // names each parameter exactly once.
  virtual void start(const BucketLayout& saved) = 0;
  // Starts to all-gather updated parameters for the next forward. Call on all ranks after owned()
  // or sharded_parameters() have changed. The all-gathers may run until the next backward ends or
  // settle(), which waits for them: until then do not change owned() or sharded_parameters(), and
  // run a micro-step on all ranks or on none.
  virtual void spread_ahead() {}
  virtual void settle() {}

  // Hooks to call before and after each unit of the model; null: none.
  virtual UnitHooks* hooks() { return nullptr; }

  // Call before each step; `step` counts the steps of the training from 0.
  virtual void begin_step(std::int64_t /*step*/) {}
  // Call before a step's first micro-step: drops all gradients.
  virtual void zero_grad() = 0;
  // Call before each micro-step's forward. `synchronize`: this is the step's last micro-step, whose
  // backward also communicates the gradients.
  virtual void begin_micro_step(bool synchronize) = 0;
  // begin_micro_step() for schedules with deferred weight gradients (zero-bubble): begin_inputs()
  // precedes the backward of inputs; begin_weights() and end_weights() enclose the weight
  // gradients, `last` of a step.
  virtual void begin_inputs() { begin_micro_step(false); }
  virtual void begin_weights(bool /*last*/) {}
  virtual void end_weights() {}
  // Call between forward and backward with the tensor that backward starts from.
  virtual void prepare_backward(const at::Tensor& loss) = 0;
  // Call after a step's last backward: communicates what backward did not.
  virtual void exchange_rest() {}

  // Call after a step: `found_inf`, a 0-dim tensor on the device, is not 0 if the update was
  // skipped. Does not wait for the device.
  virtual void end_step(const at::Tensor& /*found_inf*/) {}

  // Bytes of gradients and of all-gathered parameters that this rank has sent so far.
  virtual std::int64_t exchanged_bytes() const { return 0; }
  // Rank-local state by name, such as error-feedback residuals. Not copies: writing to them
  // restores the state. Complete after start().
  virtual units::Shards state() { return {}; }

  // Peak memory of this rank's gradients. `accumulates`: a step has several micro-batches, or a
  // pipeline runs them. By default gradients of owned() are held once.
  virtual core::GradientPeak gradient_peak(bool accumulates) const;
  // Gradient buckets, which a checkpoint saves; empty if there are none.
  virtual BucketLayout layout() const = 0;
};

// State divided over the ranks of the shard axis: optimizer state (ZeRO-1), also gradients
// (ZeRO-2), also parameters (ZeRO-3).
enum class ShardLevel { kOptimizer, kGradients, kParameters };

// Settings of sharding, and facts about the model that its parameters do not show.
struct ShardingOptions {
  ShardLevel level = ShardLevel::kParameters;
  std::vector<std::vector<std::string>> units = {};  // names of each unit's tensors
  std::vector<bool> runs = {};                       // units that this rank runs; empty: all
  std::vector<units::NamedParameter> frozen = {};    // frozen parameters
  // With kParameters: names of parameters whose fp32 shards are all-gathered as bf16; the model's
  // own parameters are bf16 from start() on. reduces_as_bf16: gradients are reduced as bf16.
  std::set<std::string> gathered_as_bf16 = {};
  bool reduces_as_bf16 = false;
  // With kParameters: shards of parameters are offloaded to CPU memory.
  bool parts_on_host = false;
};

// Gradient communication between data-parallel replicas.
struct GradientExchange {
  std::optional<recipe::Compress> compress = {};
  std::uint64_t seed = 0;  // for the random draws of compression
  bool every_step = true;  // false: local SGD (lib/local_sgd/weight_sync.h)

  // Ranks that all-reduce gradients of the same full parameters, if nothing is sharded; count() is
  // the number of ranks that the mean is taken over.
  dist::Group& ranks(const dist::Mesh& mesh) const {
    return every_step ? mesh.gradients() : mesh.gradients_of_model();
  }
  int count(const dist::Mesh& mesh) const {
    const core::MeshPlan& plan = mesh.plan();
    const int all = plan.size(core::kGradientAxes);
    return every_step ? all : all / plan.model_copies();
  }
  // Ranks that own the same shards.
  dist::Group& copies(const dist::Mesh& mesh) const {
    return every_step ? mesh.copies() : mesh.copies_in_model();
  }
  // Ranks that hold the same experts.
  dist::Group& same_experts(const dist::Mesh& mesh) const {
    return every_step ? mesh.same_experts() : mesh.group(core::Axis::kContext);
  }
};

// `parameters`: the trained parameters of the model, full and equal on all ranks; with pipeline
// parallelism those of this rank's stages. `mesh` must outlive the result.
std::unique_ptr<Placement> make_placement(std::vector<units::NamedParameter> parameters,
                                          const dist::Mesh& mesh,
                                          const ShardingOptions& sharding = {},
                                          const GradientExchange& exchange = {});

}  // namespace scaletrain::parallel
