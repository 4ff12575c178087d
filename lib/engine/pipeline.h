// Pipeline executor of one rank: runs its stages on a step's micro-batches in the schedule's order,
// and exchanges activations and gradients with neighbouring stages.
//
// Gradients have the same bits as in a single process, except those of tied tensors on several
// ranks: each stage runs backwards in ascending order of micro-batches, and each unit draws its
// random numbers by its number in the whole model.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/core/plan/pipeline_schedule.h"
#include "lib/dist/mesh.h"
#include "lib/engine/stages.h"
#include "lib/task/task.h"
#include "lib/units/unit.h"

namespace scaletrain::engine {

class DeferredWeights;  // lib/engine/deferred_weights.h

struct PipelineParts {
  core::PipelineKind kind = core::PipelineKind::kOneForward;
  int chunks = 1;  // stages of each rank
  Stages stages;
  // Defers weight gradients; null unless the schedule does.
  std::shared_ptr<DeferredWeights> deferred = nullptr;
};

// Callbacks of a step, called in the order of this rank's schedule.
struct PipelineCalls {
  std::int64_t micro_batches = 0;
  std::function<task::Example()> next;  // reads the next micro-batch; all ranks read all of them
  // Runs a stage's units and returns their output; for the last stage the root of backward, 0-dim.
  std::function<units::Flow(int stage, std::int64_t micro, const task::Example& example,
                            units::Flow input)>
      forward;
  // Runs backward from `roots`, perhaps none, and accumulates gradients. Without `gradients` the
  // root is a loss. `keeps_weights`: weight gradients are deferred to `weights`.
  std::function<void(const units::Flow& roots, const units::Flow& gradients, bool keeps_weights)>
      backward;
  // Runs `compute`, which adds a micro-batch's deferred weight gradients; `last`: of the step.
  std::function<void(const std::function<void()>& compute, bool last)> weights = {};
  std::function<void()> before_last_backward;
};

class Pipeline {
 public:
  // Makes the executor of this rank's place on the pipe axis; collective. `mesh` must outlive it.
  Pipeline(dist::Mesh& mesh, PipelineParts parts);
  ~Pipeline();

  const Stages& stages() const;
  // True for each unit of the model that this rank runs.
  std::vector<bool> own_units() const;
  // True if this rank has the last stage, which has losses and outputs.
  bool is_last() const;
  // Places on the pipe axis whose stages use the tensor `name`, ascending; the first one counts it
  // in norms.
  std::vector<int> places_of(const std::string& name) const;
  // has(): this rank's stages use the tensor. counts(): this rank is the first that does.
  bool has(const std::string& name) const;
  bool counts(const std::string& name) const;

  void run(const PipelineCalls& calls);
  // All-reduces gradients of tied tensors that stages of several ranks use; `gradient_of` returns a
  // gradient by name. Collective, after a step's backwards.
  void sum_tied(const std::function<at::Tensor(const std::string& name)>& gradient_of);

  // Passes a batch through all stages without gradients; `forward` runs one stage of this rank; its
  // result for the last stage is ignored.
  void evaluate(const task::Example& example,
                const std::function<units::Flow(int stage, units::Flow input)>& forward);
  // Returns `goes_on` of the pipeline's first rank; all its ranks call it once for each batch.
  bool agree(bool goes_on);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace scaletrain::engine
