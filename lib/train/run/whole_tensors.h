// Whole tensors in place of those of which each rank of a tensor group has a part: what is read
// from a file, or written to one, is whole.
//
// Tensors are named as the model's or, of an optimizer, "exp_avg/NAME"; those that are not cut
// stand for themselves, so that nothing is copied where no model is.
#pragma once

#include "lib/dist/group.h"
#include "lib/train/model/buffers.h"
#include "lib/units/tensor_part.h"

namespace scaletrain::train {

// `own` made whole from the parts of all ranks of `tensors`, each of which calls it.
NamedTensors gather_wholes(dist::Group& tensors, const units::TensorParts& parts,
                           const NamedTensors& own);

// Tensors of the whole ones' shapes, with any values, for what is read into them.
NamedTensors blank_wholes(const units::TensorParts& parts, const NamedTensors& own);

// Bytes of those.
std::int64_t bytes_of_wholes(const units::TensorParts& parts, const NamedTensors& own);

// Copies the parts of `whole`, a result of the above, into `own`.
void take_parts(const units::TensorParts& parts, const NamedTensors& whole,
                const NamedTensors& own);

}  // namespace scaletrain::train
