// What this rank holds of a run's model where ranks hold it together.
#pragma once

#include <optional>

#include "lib/checkpoint/contents.h"
#include "lib/train/buffers.h"
#include "lib/train/run.h"

namespace scaletrain::train {

// By name its parameters, of those that are cut what this rank has, where it has any, and its
// buffers; the run's own tensors. Who changes them calls the engine's weights_changed().
NamedTensors held_tensors(const Run& run);

// How they are cut; nullopt: they are not, and the tensors are the model's.
std::optional<checkpoint::Cut> cut_of(const Run& run);
// Ranks of a shard axis and the stages of a pipeline cut a model, each has something of it for a
// checkpoint; tensor ranks alone do not, which gather what they have whole, unless their replicas
// train alone: then each has a state of its own.
bool is_cut(const Run& run);
// What tensor ranks have, where they gather it for a file; {}: nothing, or each has its part of the
// file.
const units::TensorParts& gathered_parts(const Run& run);

}  // namespace scaletrain::train
