// One rank's row of a pipeline's schedule: runs its stages on a step's micro-batches, and exchanges
// what they give with the ranks beside it.
//
// Gradients have the bits that one process computes, but for tensors that stages of several ranks
// use: each stage takes micro-batches backward in ascending order, and each unit draws by its
// number in the whole model.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/core/pipeline_schedule.h"
#include "lib/dist/mesh.h"
#include "lib/engine/stages.h"
#include "lib/task/task.h"
#include "lib/units/unit.h"

namespace scaletrain::engine {

class DeferredWeights;  // lib/engine/deferred_weights.h

struct PipelineParts {
  core::PipelineKind kind = core::PipelineKind::kOneForward;
  int chunks = 1;  // of each rank
  Stages stages;
  // Keeps gradients of weights for later; null unless the schedule does.
  std::shared_ptr<DeferredWeights> deferred = nullptr;
};

// What the executor asks of a step, in the order of this rank's row.
struct PipelineCalls {
  std::int64_t micro_batches = 0;
  std::function<task::Example()> next;  // the next micro-batch, which each rank reads
  // What the units of a stage give; of the last stage what backward starts from, 0-dim.
  std::function<units::Flow(int stage, std::int64_t micro, const task::Example& example,
                            units::Flow input)>
      forward;
  // Adds to the gradients of everything behind `roots`, of which there may be none. Without
  // gradients the root is a loss. `keeps_weights`: what was left of it comes by `weights`.
  std::function<void(const units::Flow& roots, const units::Flow& gradients, bool keeps_weights)>
      backward;
  // Runs `compute`, which adds what a backward has left; `last` of the step.
  std::function<void(const std::function<void()>& compute, bool last)> weights = {};
  std::function<void()> before_last_backward;
};

class Pipeline {
 public:
  // For this rank's place along the pipe axis of `mesh`, which outlives it. Every rank calls it.
  Pipeline(dist::Mesh& mesh, PipelineParts parts);
  ~Pipeline();

  const Stages& stages() const;
  // Of the model's units those that this rank runs.
  std::vector<bool> own_units() const;
  // Whether it has the last stage, and with it losses and outputs.
  bool is_last() const;
  // The places along the pipe axis whose stages use the tensor of this name, ascending; the first
  // counts it.
  std::vector<int> places_of(const std::string& name) const;
  // Whether this rank's is one of them, and whether it is the first.
  bool has(const std::string& name) const;
  bool counts(const std::string& name) const;

  void run(const PipelineCalls& calls);
  // Adds up the gradients of tensors that stages of several ranks use; `gradient_of` gives one by
  // name. Each of the ranks calls it, behind a step.
  void sum_tied(const std::function<at::Tensor(const std::string& name)>& gradient_of);

  // Passes a batch through all stages without gradients; `forward` runs one of this rank's, and
  // what it returns of the last stage is not used.
  void evaluate(const task::Example& example,
                const std::function<units::Flow(int stage, units::Flow input)>& forward);
  // `goes_on` of the pipeline's first rank, on all of them: called by each, once for each batch.
  bool agree(bool goes_on);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace scaletrain::engine
