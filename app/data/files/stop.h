// Ends a command that writes data when the process is asked to stop.
#pragma once

#include <cstddef>
#include <string>

namespace scaletrain::app {

// Call between samples of a command that writes to `folder`, after core::install_stop_handlers().
// For a stop request, throws core::Error with the exit code of docs/reference/exit-codes.md;
// destructors remove unfinished files. `whole`: number of shards already published.
void leave_if_stopped(const std::string& folder, std::size_t whole = 0);

}  // namespace scaletrain::app
