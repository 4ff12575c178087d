// Load of the machine by other processes.
#pragma once

#include <string>

namespace scaletrain::launcher {

// Returns the number of runnable threads other than the caller's, from a line of /proc/loadavg; 0
// if it cannot be read. It is the smaller of the one-minute average, which stays high after threads
// end, and the present number, which fluctuates.
double busy_threads(const std::string& loadavg);

// Busy threads of this machine now.
double busy_threads_now();

}  // namespace scaletrain::launcher
