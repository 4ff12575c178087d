// Runs a model forward and backward: the micro-batches of a step, and evaluation batches.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
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

// Source of a step's micro-batches, read one after the other.
class MicroBatches {
 public:
  virtual ~MicroBatches() = default;
  virtual std::int64_t count() const = 0;
  virtual task::Example next() = 0;
};

// Reads the next micro-batch; its memory is accounted as inputs.
task::Example next_micro_batch(MicroBatches& batches);

// Parts that the engine uses; all must outlive it.
struct EngineParts {
  nn::Model& model;
  const task::Task& task;
  precision::Precision& precision;
  parallel::Placement& placement;
  const dist::Mesh& mesh;
  Pipeline* pipeline = nullptr;         // null: no pipeline parallelism
  std::vector<units::Unit> units = {};  // adapted to the layout; empty: the model's own
  // Dummy input for a rank that ran out of batches, also in evaluation, if the units themselves
  // use collectives; undefined: only the parallel strategy does.
  at::Tensor idle_input = {};
};

// Throws core::RecipeError ("/loss/chunk: ...") if the model's last unit cannot run on a part of
// the tokens.
void require_tokens_alone(const units::Unit& last);

// Options that save memory in a step.
struct MemorySavings {
  std::optional<recipe::Recompute> recompute = {};
  std::int64_t chunk = 0;  // tokens that the last unit and the loss take at a time; 0: all
  bool offload = false;    // activations are offloaded to CPU memory between forward and backward
};

// Results of a batch: task::Task::sums() and scores(), and the model's output. `scores` is
// undefined if the task has no score columns, and `output` if the loss is chunked.
struct Evaluated {
  at::Tensor sums, scores, output;
};

class Engine {
 public:
  // `seed`: base of dropout's random numbers. Throws core::RecipeError if the recipe asks for
  // activation checkpointing and no unit can be recomputed, or for chunked loss and the last unit
  // does not support it.
  Engine(const EngineParts& parts, std::uint64_t seed, const MemorySavings& savings = {});

  // Runs forward and backward of all micro-batches of step `step` (from 0). Afterwards each owned
  // parameter has as gradient the mean over data-parallel ranks of the sum of their losses times
  // `weight` (0-dim fp32), including the model's auxiliary losses. Calls `before_last_backward`
  // with the sum of this rank's losses (0-dim double) when all losses are queued, so that a
  // collective can overlap with the last backward. `again`: second pass over the step's same
  // micro-batches, with the same random numbers and without updating counters. Throws
  // core::StoppedError if a peer is lost. Reads nothing back from the device.
  void run(std::int64_t step, MicroBatches& batches, const at::Tensor& weight,
           const std::function<void(const at::Tensor&)>& before_last_backward, bool again = false);

  std::int64_t exchanged_bytes() const { return parts_.placement.exchanged_bytes(); }

  // Parameters, or shards of them, that this rank updates (lib/parallel/placement.h).
  const std::vector<units::NamedParameter>& owned() const { return parts_.placement.owned(); }
  // Returns the gradients of the owned parameters that have one.
  std::vector<at::Tensor> gradients() const;
  // Squared norm of the whole model's gradient, a 0-dim double on the device, equal on all ranks of
  // a replica; sums each element once, in double. Collective; does not wait for the device.
  at::Tensor squared_norm() const;

  // Returns the first unit whose output for a micro-batch of step `step` is not finite: "input" if
  // the input is not, "loss" for the loss; "" if all are finite, or with a pipeline. Runs forward
  // with the step's random numbers and changes no state but buffers that a unit updates itself.
  // Waits for the device. Collective.
  std::string first_not_finite(std::int64_t step, std::int64_t micro_step,
                               const task::Example& example);

  // Measures memory and time of each unit for an activation checkpointing budget: runs `example`
  // forward, each unit twice, and changes no state. Waits for the device. Collective.
  std::vector<UnitCost> measure_units(const task::Example& example);
  // Sets for each unit if backward recomputes it, instead of the recipe's choice. Before this call
  // a recipe with a budget recomputes all units but the last one.
  void set_recomputed(std::vector<bool> recomputed) { recomputed_ = std::move(recomputed); }
  const std::vector<units::Unit>& units() const { return units_; }
  // Call once after each step's update, which was skipped if `found_inf` is not 0: calls
  // parallel::Placement::end_step() and nn::Model::end_step(), and returns the latter's values.
  at::Tensor end_step(const at::Tensor& found_inf);
  const nn::Model& model() const { return parts_.model; }
  // Bytes of activations offloaded to CPU memory so far.
  std::int64_t offloaded_bytes() const { return offload_ ? offload_->moved_bytes() : 0; }

  // Evaluates one batch; the model must be in evaluation mode. With a pipeline each of its ranks
  // calls it with the same batch, and the ranks of the last stage get the values.
  Evaluated evaluate(const task::Example& example);
  // True if evaluation continues with another batch; in a pipeline all ranks get the value of its
  // first rank.
  bool agree(bool goes_on);
  // Returns the model's output for a batch that may have no targets; all units must be on this
  // rank.
  at::Tensor predict(const task::Example& example);

  // True if all ranks must evaluate or predict the same number of batches, as each batch
  // all-gathers parameters. A rank without batches calls accompany(), a dummy forward.
  bool runs_with_others() const { return walk_.exchanges(); }
  void accompany();
  // Call on all ranks after owned parameters were changed.
  void weights_changed() {
    weights_updated();
    settle();
  }
  // weights_changed() without waiting, for use after a step's update: the all-gathers overlap with
  // the next step's forward. Call settle() before anything but that forward.
  void weights_updated() { parts_.placement.spread_ahead(); }
  void settle() { parts_.placement.settle(); }

 private:
  // Seed of the random numbers of a micro-batch's pass. They depend on (seed, step, block) only, so
  // that no generator state has to be saved.
  struct Draws {
    std::uint64_t seed = 0;
    std::int64_t step = 0, block = 0;
  };
  void reseed(const Draws& draws, std::size_t unit);
  // `task`: sum of the losses. `all`: root of backward before it is weighted, that sum plus the
  // auxiliary losses, each times the number of targets, so that over a step they too are averaged
  // over its targets.
  struct Losses {
    at::Tensor task, all;
  };
  Losses forward(const Draws& draws, const task::Example& example, bool again);
  // Runs units `begin` to `end` on `flow` and returns their output; if these are the last units,
  // `losses` must be given and receives the losses.
  units::Flow run_units(std::size_t begin, std::size_t end, const Draws& draws,
                        const task::Example& example, bool again, units::Flow flow, Losses* losses);
  // Implements run() for a rank of a pipeline.
  void run_pipeline(std::int64_t step, MicroBatches& batches, const at::Tensor& weight,
                    const std::function<void(const at::Tensor&)>& before_last_backward, bool again);
  // Runs units without gradients, for evaluation.
  units::Flow look_through(std::size_t begin, std::size_t end, const task::Example& example,
                           units::Flow flow);
  // Evaluates a batch from unit `begin` to the last.
  Evaluated evaluate_from(std::size_t begin, const task::Example& example, units::Flow input);
  units::Flow run_unit(std::size_t unit, const Draws& draws,
                       const std::shared_ptr<const units::Context>& context, units::Flow input);
  // Runs the last unit and the loss chunk by chunk; loss_in_chunks() is for training.
  at::Tensor loss_in_chunks(const at::Tensor& hidden, const task::Example& example,
                            const units::Context& context);
  at::Tensor sums_in_chunks(const at::Tensor& hidden, const task::Example& example);
  // Runs backward from a loss, or from `roots` with a gradient for each.
  void backward(const units::Flow& roots, const units::Flow& gradients);

  EngineParts parts_;
  std::vector<units::Unit> units_;  // units that run, EngineParts::units or the model's
  std::uint64_t seed_;
  UnitWalk walk_;
  std::vector<bool> recomputed_;  // units that backward recomputes
  std::optional<ActivationOffload> offload_;
  std::int64_t chunk_;            // tokens of a chunk; 0: the loss takes all tokens at once
  std::vector<at::Tensor> last_;  // parameters of the last unit
};

}  // namespace scaletrain::engine
