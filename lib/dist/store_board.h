// A board in the job's store on a separate connection, so that calls waiting in the store do not
// delay it.
#pragma once

#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "lib/core/job/board.h"

namespace scaletrain::dist {

// `name` is used by no other board of the job; `rank` is for messages.
std::unique_ptr<core::Board> open_board(c10d::Store& store, const std::string& name, int rank);

}  // namespace scaletrain::dist
