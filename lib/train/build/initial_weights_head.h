// Matches the classes of a pretrained head to those of the training set.
#pragma once

#include "lib/checkpoint/weights.h"
#include "lib/format/tar/class_names.h"
#include "lib/train/run/run.h"

namespace scaletrain::train {

// Reorders the rows of a loaded head (see `report`) to the training set's classes, by name;
// `theirs` are the classes of the weights. Does nothing if either has no names. Throws
// core::CheckpointError if one has a class that the other does not have.
void match_head(const Run& run, const format::ClassNames& theirs,
                const checkpoint::WeightReport& report, const NamedTensors& tensors);

}  // namespace scaletrain::train
