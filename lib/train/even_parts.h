// What ranks have of tensors that tensor ranks and others cut together, for a file.
#pragma once

#include "lib/checkpoint/contents.h"
#include "lib/dist/group.h"

namespace scaletrain::train {

// Makes of `contents`, of which each rank of `model` holds its cut, contents of which each holds an
// equal range of the elements of every tensor, in the order of the ranks: a fused product that
// tensor ranks cut in each row is otherwise thousands of pieces. A copy; one tensor at a time is
// whole on each rank. Every rank of `model` calls it; where another replica writes, nothing is
// done.
void divide_evenly(dist::Group& model, checkpoint::Contents& contents);

}  // namespace scaletrain::train
