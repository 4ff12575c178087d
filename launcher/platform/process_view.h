// A process as /proc shows it, for reports about one that does not answer.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace scaletrain::launcher {

// R runs, S sleeps, D waits in the kernel, T was stopped, t is traced, Z has ended; ' ': not there.
char process_state(pid_t pid);

inline bool is_stopped(char state) { return state == 'T' || state == 't'; }

// "stopped (T), in the kernel's do_signal_stop"; the channel only where the kernel shows it.
std::string describe_process(pid_t pid);

// The numbers of its threads, its first one first.
std::vector<pid_t> threads_of(pid_t pid);

}  // namespace scaletrain::launcher
