// Parallelism: axes of the device mesh (lib/core/plan/mesh_plan.h) and their options.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lib/core/plan/mesh_plan.h"
#include "lib/core/plan/pipeline_schedule.h"
#include "lib/recipe/sections/batch.h"
#include "lib/recipe/sections/model.h"
#include "lib/recipe/sections/recompute.h"
#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

struct Checkpoint;
struct Precision;

// Largest /parallel/tensor; an error about it (lib/recipe/tensor.cpp) lists the divisors
// of a model's heads up to it.
inline constexpr std::int64_t kMostTensorRanks = 1024;
// Communication dtypes of sharded parameters and their gradients: "fp32" or "bf16".
struct ShardTypes {
  std::string parameters = "fp32";  // dtype of the all-gather of linear layers and convolutions
  std::string reduce = "fp32";      // dtype of the gradients' reduce-scatter
};

struct Parallel {
  std::optional<std::int64_t> replica;  // default: the remaining ranks
  std::int64_t shard = 1;
  std::string shard_level = "parameters";  // "optimizer", "gradients", "parameters": ZeRO-1, -2, -3
  std::optional<ShardTypes> types = {};
  std::int64_t expert =
      1;  // expert-parallel size: data-parallel ranks that share a mixture's experts
  std::int64_t context = 1;  // context-parallel size: ranks that share each sequence
  std::int64_t tensor = 1;
  bool sequence = false;  // sequence parallelism: with tensor, activations between its layers are
                          // divided along tokens
  std::int64_t pipeline = 1;
  std::string schedule = "1f1b";       // schedule: "gpipe", "1f1b", "interleaved", "zero_bubble"
  std::int64_t chunks = 2;             // stages of each rank if interleaved
  std::string balance = "parameters";  // balance of stages: "parameters", "time"

  core::MeshSizes mesh() const;
  // Pipeline shape for a step of so many micro-batches.
  core::PipelineKind pipeline_kind() const { return *core::find_pipeline_kind(schedule); }
  core::PipelineShape pipeline_shape(std::int64_t micro_batches) const;
};

TypePtr describe(Parallel& value);
void check(const Parallel& parallel, const Batch& batch, const Node& tree, Problems& problems);
// Checks a pipeline against the model and activation checkpointing.
void check(const Parallel& parallel, const Model& model, const std::optional<Recompute>& recompute,
           const Node& tree, Problems& problems);

// Throws core::RecipeError ("/batch: ...") naming valid numbers if the pipeline schedule does not
// support a step's number of micro-batches, for every size of a batch ramp-up.
void check_micro_batches(const Parallel& parallel, const BatchPlan& batch);

// Refuses options that do not work with sharded tensors.
void check(const Parallel& parallel, const Checkpoint& checkpoint, const Node& tree,
           Problems& problems);
// Checks the communication dtypes.
void check(const Parallel& parallel, const Precision& precision, const Node& tree,
           Problems& problems);

}  // namespace scaletrain::recipe
