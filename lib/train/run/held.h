// Local shards of a run's model whose parameters are sharded over ranks.
#pragma once

#include <optional>

#include "lib/checkpoint/contents.h"
#include "lib/train/model/buffers.h"
#include "lib/train/run/run.h"

namespace scaletrain::train {

// Returns its parameters and buffers by name, of sharded ones the local shard unless that is empty;
// the run's own tensors. Call the engine's weights_changed() after changing them.
NamedTensors held_tensors(const Run& run);

// How they are cut; nullopt: they are not, and the tensors are the model's.
std::optional<checkpoint::Cut> cut_of(const Run& run);
// Ranks of a shard axis and the stages of a pipeline cut a model, each has something of it for a
// checkpoint; tensor ranks alone do not, which gather what they have whole, unless their replicas
// train alone: then each has a state of its own.
bool is_cut(const Run& run);
// Returns the tensor-parallel shards that ranks gather for a file; {}: none, or each rank writes
// its own shard.
const units::TensorParts& gathered_parts(const Run& run);

}  // namespace scaletrain::train
