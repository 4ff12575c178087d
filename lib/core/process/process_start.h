// Start of a process: two that have one number, one after the other, differ in it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace scaletrain::core {

// Start of a process or thread in clock ticks since boot (field 22 of /proc/PID/stat). 0: there is
// none, or only a zombie, which its parent has not reaped.
std::int64_t start_ticks(pid_t pid);

// Returns the start time of a process in seconds since 1970; 0 if the process is gone or a zombie.
double start_time(pid_t pid);

// Kernel's id of this boot.
std::string this_boot();

// "pid:[4026531836]": numbers of processes mean something within one namespace only, such as a
// container's. "" if it is unknown.
std::string this_pid_namespace();

}  // namespace scaletrain::core
