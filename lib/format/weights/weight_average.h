// The mean of several sets of weights: of the last checkpoints of a run, or of runs from one start
// (Wortsman et al., Model soups, 2022).
#pragma once

#include <vector>

#include "lib/format/weights/weight_set.h"
#include "lib/format/weights/weight_write.h"

namespace scaletrain::format {

// The mean of each floating tensor, added up in doubles in the order of `sets` and rounded to its
// type; a tensor of any other type is that of the first set. All tensors are in memory at once. At
// least one set. Throws core::CheckpointError naming a tensor that one set has with another type or
// shape, or does not have, and its file.
std::vector<OwnedTensor> average_weights(const std::vector<const WeightSet*>& sets);

}  // namespace scaletrain::format
