// A run's model, averaged weights and optimizer as shards of full tensors, for any layout.
#pragma once

#include <string>

#include "lib/checkpoint/shard_reader.h"
#include "lib/train/model/buffers.h"
#include "lib/train/run/run.h"
#include "lib/units/memory_meter.h"
#include "lib/units/shard.h"

namespace scaletrain::train {

// True if each rank reads and writes its own shards of a checkpoint: with ZeRO/FSDP sharding, with
// pipeline stages, with experts, and with tensor parallelism in decoupled replicas. Otherwise rank
// 0 reads and writes full tensors, which tensor-parallel ranks gather first.
bool is_sharded(const Run& run);
checkpoint::ReadBy read_by(const Run& run);

// Returns the parameters and buffers by name, without copying, also those that are not here. After
// changing a tensor, call the engine's weights_changed().
units::Shards model_shards(const Run& run);

// Sets the owner of each shard of state: "KIND/NAME" has that of the parameter NAME of `model`, all
// other state the first rank that holds it.
void set_owners(const Run& run, const units::Shards& model, units::Shards& state);

// Returns the optimizer's state, and with `outer` that of the outer optimizer of local SGD.
units::Shards optimizer_shards(const Run& run, const units::Shards& model, bool outer);

// Attributes the blocks of parameters, gradients and optimizer state to their kinds; call between
// steps.
void attribute_state(const Run& run, units::MemoryMeter& meter);

// Returns the bytes of the full tensors in a checkpoint of the model, the optimizer and the
// averaged weights.
std::int64_t bytes_of_state(const Run& run);

}  // namespace scaletrain::train
