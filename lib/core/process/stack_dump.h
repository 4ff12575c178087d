// Stack traces on request, without a debugger: a signal makes the interrupted thread write its own
// stack.
#pragma once

#include <atomic>
#include <cstdint>

namespace scaletrain::core {

// Installs the handler and returns its signal. A thread that receives the signal writes to `fd` a
// line "thread TID NAME" and one line for each frame, innermost first, as backtrace_symbols_fd(3)
// does, and then increments `written`. Signal one thread at a time (tgkill), the next one after the
// increment. Both arguments must outlive the last thread of the process. Call once.
int install_stack_dump(int fd, std::atomic<std::uint32_t>& written);

}  // namespace scaletrain::core
