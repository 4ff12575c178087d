// How busy the machine is with what others run.
#pragma once

#include <string>

namespace scaletrain::launcher {

// Threads that run or wait for a core beside the one that asks, from a line of /proc/loadavg; 0
// where it cannot be read. Both the mean of the last minute and the number of this moment must say
// so: the first stays high when all have ended, the second is chance.
double busy_threads(const std::string& loadavg);

// Busy threads of this machine now.
double busy_threads_now();

}  // namespace scaletrain::launcher
