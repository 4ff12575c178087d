// Threads that the system refuses to start: which limit that is, and what a person can do.
#pragma once

#include <exception>

namespace scaletrain::core {

inline constexpr const char* kNoThread =
    "cannot start a thread: Resource temporarily unavailable (EAGAIN)";
inline constexpr const char* kMoreThreads =
    "raise the limit of processes and threads: ulimit -u, --pids-limit of a container, TasksMax of "
    "a service (pids.max of the cgroup)";

// True if `error` is what std::thread throws, LibTorch's pools too, when the system refuses one.
bool is_thread_refusal(const std::exception& error);

// Starts `count` threads at once and ends them: for pools of libraries that wait for ever, or end
// the process, if the system refuses one. Throws std::system_error then.
void try_threads(int count);

}  // namespace scaletrain::core
