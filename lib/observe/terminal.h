// A terminal that must never hold up the work whose state it shows.
#pragma once

#include <string>

namespace scaletrain::observe {

// One write, dropped where `fd` does not take it within `wait_ms`: a terminal that was stopped or a
// reader that sleeps must not hold up anything. Whatever is wrong with the descriptor (EPIPE,
// ENOSPC, EIO of a terminal that has gone) is no reason to stop either.
void offer(int fd, const std::string& text, int wait_ms);

// One column less than the terminal has: a full line would wrap on some.
int columns(int fd);

}  // namespace scaletrain::observe
