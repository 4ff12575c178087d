// Gathers full tensors from tensor-parallel shards, since files hold full tensors, and scatters
// them again.
//
// Tensors have the model's names or, for optimizer state, "exp_avg/NAME". Tensors that are not
// sharded are returned as they are, so nothing is copied without tensor parallelism.
#pragma once

#include "lib/dist/group.h"
#include "lib/train/model/buffers.h"
#include "lib/units/tensor_part.h"

namespace scaletrain::train {

// Gathers `own` from the shards of all ranks of `tensors`. Collective.
NamedTensors gather_wholes(dist::Group& tensors, const units::TensorParts& parts,
                           const NamedTensors& own);

// Returns uninitialised tensors with the full shapes, to read into.
NamedTensors blank_wholes(const units::TensorParts& parts, const NamedTensors& own);

// Returns the bytes of such tensors.
std::int64_t bytes_of_wholes(const units::TensorParts& parts, const NamedTensors& own);

// Copies this rank's shards of `whole`, a result of the above, into `own`.
void take_parts(const units::TensorParts& parts, const NamedTensors& whole,
                const NamedTensors& own);

}  // namespace scaletrain::train
