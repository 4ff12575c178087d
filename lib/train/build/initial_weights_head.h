// The classes of a head that was taken from weights.
#pragma once

#include "lib/checkpoint/weights.h"
#include "lib/format/tar/class_names.h"
#include "lib/train/run/run.h"

namespace scaletrain::train {

// Puts the rows of the head that `report` says to be taken in the order of the training set's
// classes, by name; `theirs` are those of the weights. Nothing is done where either has no names.
// Throws core::CheckpointError where one of them has a class that the other does not have.
void match_head(const Run& run, const format::ClassNames& theirs,
                const checkpoint::WeightReport& report, const NamedTensors& tensors);

}  // namespace scaletrain::train
