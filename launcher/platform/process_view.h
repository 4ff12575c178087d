// Describes an unresponsive process from /proc, for reports.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace scaletrain::launcher {

// Returns R (running), S (sleeping), D (waiting in the kernel), T (stopped), t (traced), Z
// (zombie), or ' ' if it does not exist.
char process_state(pid_t pid);

inline bool is_stopped(char state) { return state == 'T' || state == 't'; }

// Returns "stopped (T), in the kernel's do_signal_stop"; the function only if the kernel shows it.
std::string describe_process(pid_t pid);

// Returns the numbers of its threads, the main thread first.
std::vector<pid_t> threads_of(pid_t pid);

}  // namespace scaletrain::launcher
