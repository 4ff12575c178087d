// Runs a model forward and backward: the order of a step's micro-batches, and what each evaluation
// batch gives.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "lib/dist/mesh.h"
#include "lib/engine/offload.h"
#include "lib/engine/recompute_budget.h"
#include "lib/engine/unit_walk.h"
#include "lib/nn/model.h"
#include "lib/parallel/placement.h"
#include "lib/precision/precision.h"
#include "lib/recipe/sections/recompute.h"
#include "lib/task/task.h"
#include "lib/units/unit.h"

namespace scaletrain::engine {

class Pipeline;  // lib/engine/pipeline.h

// The micro-batches of one step, one after the other.
class MicroBatches {
 public:
  virtual ~MicroBatches() = default;
  virtual std::int64_t count() const = 0;
  virtual task::Example next() = 0;
};

// The next one, whose memory counts as inputs.
task::Example next_micro_batch(MicroBatches& batches);

// What it runs; all of it outlives the engine.
struct EngineParts {
  nn::Model& model;
  const task::Task& task;
  precision::Precision& precision;
  parallel::Placement& placement;
  const dist::Mesh& mesh;
  Pipeline* pipeline = nullptr;         // null: each rank runs all units
  std::vector<units::Unit> units = {};  // as a layout runs the model's; empty: as they are
  // What the units exchange something on, in evaluation too, where this rank has no batch;
  // undefined: they exchange nothing that the placement does not.
  at::Tensor idle_input = {};
};

// Throws core::RecipeError ("/loss/chunk: ...") if the last unit of a model cannot take a part of
// the tokens at a time.
void require_tokens_alone(const units::Unit& last);

// How a step needs less memory.
struct MemorySavings {
  std::optional<recipe::Recompute> recompute = {};
  std::int64_t chunk = 0;  // tokens that the last unit and the loss take at a time; 0: all
  bool offload = false;    // activations lie in the host's memory between forward and backward
};

// task::Task::sums() and scores() of a batch, and what the model gave; no scores where the task has
// no columns of them, and no output where the loss takes chunks of tokens.
struct Evaluated {
  at::Tensor sums, scores, output;
};

class Engine {
 public:
  // `seed` is what dropout draws from. Throws core::RecipeError where the model has nothing that
  // could be run again, or its last unit takes no tokens one by one.
  Engine(const EngineParts& parts, std::uint64_t seed, const MemorySavings& savings = {});

  // Step number `step` (from 0): forward and backward of all micro-batches; afterwards every
  // parameter that this rank owns has as gradient the mean over the data coordinates of the sum of
  // their losses, each times `weight` (0-dim fp32); the model's auxiliary losses among them. Calls
  // `before_last_backward` with the sum of this rank's losses (0-dim double) when all of them are
  // queued, so that an exchange can be under way during the last backward. `again`: the step's
  // second pass over the same micro-batches, which draws as the first did and counts nothing.
  // Throws core::StoppedError where a peer is lost. Reads nothing back from the device.
  void run(std::int64_t step, MicroBatches& batches, const at::Tensor& weight,
           const std::function<void(const at::Tensor&)>& before_last_backward, bool again = false);

  std::int64_t exchanged_bytes() const { return parts_.placement.exchanged_bytes(); }

  // What this rank updates (lib/parallel/placement.h).
  const std::vector<units::NamedParameter>& owned() const { return parts_.placement.owned(); }
  // The gradients of that which have one.
  std::vector<at::Tensor> gradients() const;
  // Sum of the squares of the gradients of the whole model, a 0-dim double on the device and the
  // same on all ranks of a replica: every element is counted once, in doubles. Every rank calls it
  // at the same point of a step; it only queues work.
  at::Tensor squared_norm() const;

  // What a budget for recomputation decides by: runs `example` forward, each unit twice, and leaves
  // nothing changed. Waits for the device. Every rank calls it.
  std::vector<UnitCost> measure_units(const task::Example& example);
  // For each unit whether backward runs it again, in place of what the recipe says; all but the
  // last one do until then where that is a budget.
  void set_recomputed(std::vector<bool> recomputed) { recomputed_ = std::move(recomputed); }
  const std::vector<units::Unit>& units() const { return units_; }
  // Called once behind each step's update, which was left out where `found_inf` is not 0:
  // parallel::Placement's and nn::Model::end_step(), whose numbers it returns.
  at::Tensor end_step(const at::Tensor& found_inf);
  const nn::Model& model() const { return parts_.model; }
  // Of activations, that went to the host's memory so far.
  std::int64_t offloaded_bytes() const { return offload_ ? offload_->moved_bytes() : 0; }

  // Of one batch. The model is in evaluation mode. In a pipeline each of its ranks calls it with
  // the same batch, and the last stage's has the values.
  Evaluated evaluate(const task::Example& example);
  // Whether evaluation goes on with a batch: in a pipeline its first rank says so for all.
  bool agree(bool goes_on);
  // What the model alone gives, where nothing is known to compare with; of all its units on this
  // rank.
  at::Tensor predict(const task::Example& example);

  // Whether all ranks must evaluate, or predict, as many batches: they exchange parameters with
  // each. A rank that has none left takes part in another one's by accompany().
  bool runs_with_others() const { return walk_.exchanges(); }
  void accompany();
  // After what this rank owns was changed. Every rank calls it.
  void weights_changed() {
    weights_updated();
    settle();
  }
  // The same behind a step's update: what ranks gather of each other arrives during the next step's
  // forward, or when settle() is called, which must be before anything else happens.
  void weights_updated() { parts_.placement.spread_ahead(); }
  void settle() { parts_.placement.settle(); }

 private:
  // What a pass of a micro-batch draws from: (seed, step, block) and nothing before, so that no
  // generator state has to be saved.
  struct Draws {
    std::uint64_t seed = 0;
    std::int64_t step = 0, block = 0;
  };
  void reseed(const Draws& draws, std::size_t unit);
  // The sum of the losses, and what backward starts from before it is weighed: that sum and the
  // auxiliary losses, each times the targets, so that of a step's batches they are the mean over
  // its targets, as the loss is.
  struct Losses {
    at::Tensor task, all;
  };
  Losses forward(const Draws& draws, const task::Example& example, bool again);
  // What the units from `begin` to `end` give of `flow`; `losses`: those are the last ones, and
  // what the task makes of it.
  units::Flow run_units(std::size_t begin, std::size_t end, const Draws& draws,
                        const task::Example& example, bool again, units::Flow flow, Losses* losses);
  // run() of one rank of a pipeline.
  void run_pipeline(std::int64_t step, MicroBatches& batches, const at::Tensor& weight,
                    const std::function<void(const at::Tensor&)>& before_last_backward, bool again);
  // The same units, to look at what they give.
  units::Flow look_through(std::size_t begin, std::size_t end, const task::Example& example,
                           units::Flow flow);
  // All units from `begin` on, and what the task makes of it.
  Evaluated evaluate_from(std::size_t begin, const task::Example& example, units::Flow input);
  units::Flow run_unit(std::size_t unit, const Draws& draws,
                       const std::shared_ptr<const units::Context>& context, units::Flow input);
  // The last unit and the loss.
  at::Tensor loss_in_chunks(const at::Tensor& hidden, const task::Example& example,
                            const units::Context& context);
  at::Tensor sums_in_chunks(const at::Tensor& hidden, const task::Example& example);
  // From a loss, or from `roots` with the gradients of each.
  void backward(const units::Flow& roots, const units::Flow& gradients);

  EngineParts parts_;
  std::vector<units::Unit> units_;  // the model's
  std::uint64_t seed_;
  UnitWalk walk_;
  std::vector<bool> recomputed_;  // by unit
  std::optional<ActivationOffload> offload_;
  std::int64_t chunk_;            // 0: the loss takes all tokens at once
  std::vector<at::Tensor> last_;  // the last unit's parameters
};

}  // namespace scaletrain::engine
