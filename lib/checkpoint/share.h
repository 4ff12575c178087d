// Shares of a checkpoint that several ranks write.
#pragma once

#include "lib/checkpoint/contents.h"

namespace scaletrain::checkpoint {

// The share of `writer` of `writers` in `contents`, of which all have the model, the means and the
// optimizer alike: of these about as many bytes as each other's, as pieces. A tensor that is cut
// becomes its elements in row-major order, [count]. All else is writer 0's. Of contents that are
// cut already, what the rank has (lib/checkpoint/cut.h).
Contents share_of(const Contents& contents, int writer, int writers);

}  // namespace scaletrain::checkpoint
