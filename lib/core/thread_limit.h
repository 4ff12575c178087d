// Threads that the system refuses to start: names the limit and the remedy.
#pragma once

#include <exception>

namespace scaletrain::core {

inline constexpr const char* kNoThread =
    "cannot start a thread: Resource temporarily unavailable (EAGAIN)";
inline constexpr const char* kMoreThreads =
    "raise the limit of processes and threads: ulimit -u, --pids-limit of a container, TasksMax of "
    "a service (pids.max of the cgroup)";

// True if `error` is the exception of std::thread or LibTorch's pools for a thread that the system
// refused.
bool is_thread_refusal(const std::exception& error);

// Starts `count` threads at once and ends them; throws std::system_error if the system refuses one.
// For libraries whose thread pools would hang or abort in that case.
void try_threads(int count);

}  // namespace scaletrain::core
