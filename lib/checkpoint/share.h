// A rank's share of a checkpoint that several ranks write.
#pragma once

#include "lib/checkpoint/contents.h"

namespace scaletrain::checkpoint {

// Returns what rank `writer` of `writers` writes. Of sharded files these are the shards that it
// owns. Files of weights and optimizer state that every rank holds in full are divided: each writer
// gets about as many bytes, as ranges of the tensors' elements. Rank 0 writes all other files.
Contents share_of(const Contents& contents, int writer, int writers);

}  // namespace scaletrain::checkpoint
