// Shares of a checkpoint that several ranks write.
#pragma once

#include "lib/checkpoint/contents.h"

namespace scaletrain::checkpoint {

// Returns the share of `writer` among `writers` ranks. All ranks have the same model, averages and
// optimizer state; each writes about as many bytes of them, as pieces of tensors. A divided tensor
// is stored as its elements in row-major order, [count]. Everything else is written by writer 0.
// For sharded contents, returns the local shards (lib/checkpoint/cut.h).
Contents share_of(const Contents& contents, int writer, int writers);

}  // namespace scaletrain::checkpoint
