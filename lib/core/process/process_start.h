// Start time of a process: it differs between two processes that had the same number one after the
// other.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace scaletrain::core {

// Returns the start of a process or thread in clock ticks since boot (field 22 of /proc/PID/stat);
// 0 if there is none, or only a zombie that its parent has not reaped.
std::int64_t start_ticks(pid_t pid);

// Returns the start time of a process in seconds since 1970; 0 if the process is gone or a zombie.
double start_time(pid_t pid);

// Returns the kernel's id of the current boot.
std::string this_boot();

// Returns this process's namespace, "pid:[4026531836]": process numbers are unique only within a
// namespace, such as a container's. "" if it is unknown.
std::string this_pid_namespace();

}  // namespace scaletrain::core
