// A board in the job's store, on a connection of its own: nobody who waits in the store keeps it
// from being read.
#pragma once

#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "lib/core/job/board.h"

namespace scaletrain::dist {

// `name` is given to no other board of the job; `rank` is for messages.
std::unique_ptr<core::Board> open_board(c10d::Store& store, const std::string& name, int rank);

}  // namespace scaletrain::dist
