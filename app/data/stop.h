// A command that writes and is asked to stop.
#pragma once

#include <cstddef>
#include <string>

namespace scaletrain::app {

// For who writes to `folder`, between samples, after core::install_stop_handlers(). Where a stop
// was asked for, throws core::Error that says so and ends the program as
// docs/reference/exit-codes.md has it: what is not finished disappears with its owners. `whole`
// shards are in their place already.
void leave_if_stopped(const std::string& folder, std::size_t whole = 0);

}  // namespace scaletrain::app
