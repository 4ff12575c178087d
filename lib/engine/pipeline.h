// One rank's row of a pipeline's schedule: runs its stages on a step's micro-batches, and exchanges
// what they give with the ranks beside it.
//
// Gradients have the bits that one process computes, but for tensors that several stages use: each
// stage takes micro-batches backward in ascending order, and each unit draws by its number in the
// whole model.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/core/pipeline_schedule.h"
#include "lib/dist/mesh.h"
#include "lib/engine/deferred_weights.h"
#include "lib/engine/flow_link.h"
#include "lib/engine/stages.h"
#include "lib/task/task.h"
#include "lib/units/unit.h"

namespace scaletrain::engine {

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
  // Adds to the gradients of everything behind `roots`. With no gradients the root is a loss.
  std::function<void(const units::Flow& roots, const units::Flow& gradients)> backward;
  std::function<void()> before_last_backward;
};

class Pipeline {
 public:
  // For this rank's place along the pipe axis of `mesh`, which outlives it. Every rank calls it.
  Pipeline(dist::Mesh& mesh, PipelineParts parts);
  ~Pipeline();

  const Stages& stages() const { return parts_.stages; }
  // Whether it has the last stage, and with it losses and outputs.
  bool is_last() const { return place_ + 1 == ranks_; }
  // Whether one of this rank's stages uses the tensor of this name.
  bool has(const std::string& name) const;
  // The places along the pipe axis whose stages use it, ascending; the first counts it.
  std::vector<int> places_of(const std::string& name) const;

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
  struct Held;
  class Step;
  struct Tied {
    dist::Group* group = nullptr;
    std::vector<std::string> names;
  };
  using Row = std::vector<core::Action>;

  Pipeline(dist::Mesh& mesh, PipelineParts parts, const dist::PipeLinks& links);
  const Row& row_for(std::int64_t micro_batches);
  int stage_of(int chunk) const { return chunk * ranks_ + place_; }
  int rank_of(int stage) const { return stage % ranks_; }

  PipelineParts parts_;
  at::Device device_;
  int place_, ranks_;
  FlowLink activations_in_, activations_out_;
  dist::PipeLink gradients_in_, gradients_out_;
  std::vector<Tied> tied_;            // those of this rank
  std::map<std::int64_t, Row> rows_;  // by micro-batches, proven
};

}  // namespace scaletrain::engine
