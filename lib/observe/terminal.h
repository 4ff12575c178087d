// Writes to a terminal without ever blocking the work that it shows.
#pragma once

#include <string>

namespace scaletrain::observe {

// Makes one write, which is dropped if `fd` does not accept it within `wait_ms`: a stopped terminal
// or a sleeping reader must not block anything. Errors of the descriptor (EPIPE, ENOSPC, EIO of a
// closed terminal) are ignored.
void offer(int fd, const std::string& text, int wait_ms);

// Returns one column less than the terminal has: a full line would wrap on some.
int columns(int fd);

}  // namespace scaletrain::observe
