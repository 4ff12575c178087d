// Stacks on demand, without a debugger: a signal makes the thread that it interrupts write its own.
#pragma once

#include <atomic>
#include <cstdint>

namespace scaletrain::core {

// After this call the signal that is returned makes a thread write to `fd` a line "thread TID NAME"
// and one line for each frame, innermost first, as backtrace_symbols_fd(3) writes it, and then add
// one to `written`. Ask one thread after another (tgkill), each when the one before has counted.
// Both arguments must outlive the process's last thread. Call once.
int install_stack_dump(int fd, std::atomic<std::uint32_t>& written);

}  // namespace scaletrain::core
