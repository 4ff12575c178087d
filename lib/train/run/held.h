// Local shards of a run's model whose parameters are sharded over ranks.
#pragma once

#include <optional>

#include "lib/checkpoint/contents.h"
#include "lib/train/model/buffers.h"
#include "lib/train/run/run.h"
#include "lib/units/memory_meter.h"

namespace scaletrain::train {

// Returns the parameters and buffers of this rank by name, without copying. A sharded parameter is
// represented by its local shard, and is left out if that is empty. After changing a tensor, call
// the engine's weights_changed().
NamedTensors held_tensors(const Run& run);

// Attributes the blocks of parameters, gradients and optimizer state to their kinds; call between
// steps.
void attribute_state(const Run& run, units::MemoryMeter& meter);

// Returns how the held tensors are sharded; nullopt if each rank holds the full model.
std::optional<checkpoint::Cut> cut_of(const Run& run);
// True if each rank writes its own shard to a checkpoint: with ZeRO/FSDP sharding, with pipeline
// stages, and with tensor parallelism in decoupled replicas. Tensor-parallel ranks otherwise gather
// the full tensors first.
bool is_cut(const Run& run);
// Returns the tensor-parallel shards that ranks gather for a file; {}: none, or each rank writes
// its own shard.
const units::TensorParts& gathered_parts(const Run& run);

}  // namespace scaletrain::train
