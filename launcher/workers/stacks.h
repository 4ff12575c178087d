// Native stacks of a scaletrain worker, which it writes itself (lib/core/process/stack_dump.h).
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "lib/core/clock.h"
#include "lib/core/process/beat.h"

namespace scaletrain::launcher {

struct ThreadStack {
  std::string thread;               // "thread 4242 scaletrain-work"
  std::vector<std::string> frames;  // innermost first, "scaletrain::data::... + 0x1c (program)"
};

// Requests the stack of each thread of the running process, until `deadline`. Threads that do not
// answer are left out. Returns {} if the worker does not support it.
std::vector<ThreadStack> capture_stacks(pid_t pid, const core::BeatReader& beat,
                                        core::SteadyTime deadline);

// Parses the stacks that a worker wrote.
std::vector<ThreadStack> parse_stacks(std::string_view text);

}  // namespace scaletrain::launcher
