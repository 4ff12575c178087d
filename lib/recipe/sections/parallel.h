// How the ranks of a job divide the model and the batch among themselves: the axes of the mesh
// (lib/core/mesh_plan.h) and what lies along them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lib/core/mesh_plan.h"
#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

// In which numbers the ranks of the shard axis exchange parameters and gradients.
struct ExchangeTypes {
  std::string parameters = "fp32";  // "fp32", "bf16"
  std::string reduce = "fp32";      // "fp32", "bf16": gradients
};

struct Optimizer;
struct Clip;
struct Checkpoint;

struct Parallel {
  std::optional<std::int64_t> replica;  // without it the ranks that are left
  std::int64_t shard = 1;
  std::string shard_level = "parameters";  // "optimizer", "gradients", "parameters": ZeRO-1, -2, -3
  ExchangeTypes exchange;
  std::int64_t tensor = 1;
  bool sequence = false;  // with tensor: what lies between the cut layers is cut along the tokens
  std::int64_t pipeline = 1;
  std::string schedule = "1f1b";  // of the pipeline: "gpipe", "1f1b", "interleaved", "zero_bubble"
  std::int64_t chunks = 2;        // of an interleaved one: stages of each rank
  std::string balance = "time";   // of its stages: "time", "parameters"

  core::MeshSizes mesh() const;
};

TypePtr describe(Parallel& value);

// What looks at whole tensors does not go with ranks that have parts of them.
void check(const Parallel& parallel, const Optimizer& optimizer, const std::optional<Clip>& clip,
           const Checkpoint& checkpoint, const Node& tree, Problems& problems);

}  // namespace scaletrain::recipe
