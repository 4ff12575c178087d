// Even resharding, for a file, of tensors that tensor parallelism and another axis shard together.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/checkpoint/contents.h"
#include "lib/dist/group.h"
#include "lib/train/model/buffers.h"

namespace scaletrain::train {

// `own`, of which each rank of `model` has the pieces that `parts` say, as an equal range of the
// elements of every tensor, in the order of the ranks; what is not cut as it is. And which range
// that is. Every rank of `model` calls it.
NamedTensors divide_evenly(dist::Group& model, const checkpoint::Parts& parts,
                           const NamedTensors& own);
format::Piece even_range(const std::vector<std::int64_t>& shape, const dist::Group& model);

// Makes of `contents`, of which each rank of `model` holds its cut, contents of which each holds an
// equal range of the elements of every tensor, in the order of the ranks: a fused product that
// tensor ranks cut in each row is otherwise thousands of pieces. A copy; one tensor at a time is
// whole on each rank. Every rank of `model` calls it; where another replica writes, nothing is
// done.
void divide_evenly(dist::Group& model, checkpoint::Contents& contents);

}  // namespace scaletrain::train
