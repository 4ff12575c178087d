// One optimizer step: micro-batches forward and backward, gradients averaged, one update.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "lib/core/process/beat.h"
#include "lib/core/process/signals.h"
#include "lib/data/loader/batch_stream.h"
#include "lib/dist/mesh.h"
#include "lib/engine/engine.h"
#include "lib/local_sgd/replicas.h"
#include "lib/optim/clip.h"
#include "lib/optim/mean.h"
#include "lib/optim/optimizer.h"
#include "lib/optim/sam.h"
#include "lib/precision/precision.h"
#include "lib/recipe/sections/anomaly.h"
#include "lib/recipe/sections/batch.h"
#include "lib/recipe/sections/clip.h"
#include "lib/recipe/sections/sam.h"
#include "lib/task/task.h"
#include "lib/train/model/buffers.h"
#include "lib/train/rules/bit_flip.h"
#include "lib/train/rules/fault.h"
#include "lib/train/rules/outcomes.h"
#include "lib/train/rules/spike_bounds.h"
#include "lib/train/run/step_evidence.h"
#include "lib/train/run/step_numbers.h"

namespace scaletrain::train {

// Facts the host knows when a step is queued; all but the first two are this rank's only.
struct StepFacts {
  std::int64_t step = 0;  // counted from 0
  double lr = 0;
  std::optional<double> weight_decay = {};  // nullopt: constant
  data::StageTimes stages = {};
  std::vector<data::BadSample> bad_samples = {};  // on a rank that counts samples
  std::int64_t exchanged_bytes = 0;               // gradients and weights communicated
};

// A step whose numbers are on their way to the host.
struct QueuedStep {
  StepFacts facts;
  StepNumbers<std::int64_t> sizes;
};

// Result of a step; all but `facts` is the same on all ranks.
struct StepResult {
  StepFacts facts;
  double loss = 0;          // mean over the global batch's targets
  double grad_norm = 0;     // before clipping
  bool finite = true;       // true if loss and gradients are finite; false: the update was skipped
  bool loss_spike = false;  // the loss is above its bound
  bool norm_spike = false;  // the gradient norm is above its bound
  bool taken = true;        // false: the step was left out, on all ranks
  std::optional<SpikeBounds> bounds = {};  // rank 0's; nullopt without /anomaly
  std::optional<double> loss_scale = {};   // nullopt: no loss scaling
  std::vector<double> statistics = {};     // nn::Model::statistics()
  core::StopReason stop = core::StopReason::kNone;
  std::uint64_t digest = 0;      // digest of the global batch
  double trained_s = 0;          // rank 0's clock at the step's beginning
  std::int64_t skipped = 0;      // bad samples of all data-parallel ranks
  bool save = false;             // rank 0 has requested a checkpoint
  std::int64_t trace_steps = 0;  // rank 0 has requested a trace of this many steps; 0: none
  bool has_targets = true;       // false: masks leave out all targets of the global batch

  // True if the step is not finite or a spike, other than by an overflow.
  bool is_anomalous() const { return (!finite && !overflowed()) || loss_spike || norm_spike; }
  // True if the gradients of a finite loss overflowed at this loss scale; the next step's is lower.
  bool overflowed() const;
};

// Parts that a step uses; all of them outlive the runner.
struct StepParts {
  const dist::Mesh& mesh;
  core::Beat& beat;
  data::BatchStream& batches;
  const task::Task& task;
  engine::Engine& engine;
  precision::Precision& precision;
  optim::Optimizer& optimizer;
  std::vector<at::Tensor> buffers;  // the model's
  recipe::BatchPlan batch;
  std::optional<recipe::Clip> clip;
  std::optional<recipe::Anomaly> anomaly = std::nullopt;
  optim::ShardedParameters shards = {};  // shards of sharded parameters
  std::optional<recipe::Sam> sam = std::nullopt;
  std::vector<optim::Mean*> means = {};
  local_sgd::Replicas& replicas;
  // Called when a step has its gradients, before it changes weights, optimizer state and means.
  std::function<void()> before_update = [] {};
  // Called with every prepared micro-batch; null: not called.
  std::function<void(const task::Example& example)> on_batch = nullptr;
  // Called with the step (from 0) when its gradients are unscaled and not clipped; null likewise.
  std::function<void(std::int64_t step)> on_gradients = nullptr;
};

class StepRunner {
 public:
  // `late`: the result of a step is read back asynchronously, after the next step was queued.
  StepRunner(StepParts parts, bool late);

  // Queues optimizer step `step` (from 0) with learning rate `lr`; on a CPU, runs it. `trained_s`
  // is this rank's training time in seconds. `weight_decay` replaces the optimizer's from this step
  // on. `save`: this rank requests a checkpoint after the step; `trace_steps`: it requests a trace
  // of so many steps. `bounds` of a spike, with /anomaly. Does not synchronize with the device.
  void run(std::int64_t step, double lr, double trained_s,
           std::optional<double> weight_decay = std::nullopt, bool save = false,
           std::int64_t trace_steps = 0, const SpikeBounds& bounds = {});

  // Returns the result of the last step, or of the one before it if `late`, each result once;
  // nullopt if none is due.
  std::optional<StepResult> next();
  // The oldest, due or not: called until it is nullopt before a save, an evaluation and a stop.
  std::optional<StepResult> drain();

  // Returns this rank's evidence for an anomalous step whose result was returned last. Collective.
  Evidence examine(const StepResult& result);

 private:
  class Batches;
  // Returns the weight of each loss: 1 / targets of the global batch of `samples` samples, times
  // the ranks of mesh.gradients() to undo the mean over them. Gradients are then those of the
  // global mean.
  at::Tensor weight(Batches& batches, std::int64_t samples);
  // Replaces the gradients by those at the worst nearby weights (lib/optim/sam.h). Returns 0, or a
  // non-finite value if the gradients were not finite.
  at::Tensor look_nearby(std::int64_t step, Batches& batches, const at::Tensor& loss_weight);
  // Clips as in the recipe, and with /anomaly and the policy clip to the bound of the norm.
  void clip(const std::vector<at::Tensor>& gradients, at::Tensor norm, const at::Tensor& votes);
  // Flips bits of the updated weights and optimizer state, if planted for this step.
  void flip_updated(std::int64_t step);
  // Updates EMA and SWA weights.
  void update_means(std::int64_t step, const at::Tensor& found_inf);
  core::StopReason stop_reason() const;
  // False if spikes are clipped, or not looked for.
  bool skips_spikes() const { return parts_.anomaly && parts_.anomaly->policy != "clip"; }
  // Gradient and weight bytes communicated so far.
  std::int64_t communicated_bytes() const;

  StepParts parts_;
  std::optional<Fault> fault_;
  PlantedFlips flips_;
  std::optional<optim::Sam> sam_;
  StepEvidence evidence_;
  KeptTensors buffers_;  // the model's, from before the step
  core::BatchSizes sizes_;
  at::ScalarType weight_type_;  // dtype of the loss weight: fp32, or fp64 for fp64 models
  std::int64_t weighed_ = 0;    // samples of the batch for which `weight_` was computed,
  at::Tensor fixed_weight_;     // loss weight if equal batches have equal targets
  Outcomes<QueuedStep> outcomes_;
};

}  // namespace scaletrain::train
