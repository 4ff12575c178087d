// Averages several sets of weights: the last checkpoints of a run, or runs from one start (Wortsman
// et al., Model soups, 2022).
#pragma once

#include <vector>

#include "lib/format/weights/weight_set.h"
#include "lib/format/weights/weight_write.h"

namespace scaletrain::format {

// Averages each floating-point tensor in double precision, in the order of `sets`, and rounds to
// its dtype; other tensors come from the first set. Needs at least one set and memory for all
// tensors. Throws core::CheckpointError naming a tensor (and its file) that is missing in a set or
// has another dtype or shape.
std::vector<OwnedTensor> average_weights(const std::vector<const WeightSet*>& sets);

}  // namespace scaletrain::format
