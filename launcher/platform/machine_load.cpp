#include "launcher/platform/machine_load.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace scaletrain::launcher {

double busy_threads(const std::string& loadavg) {
  // "14.02 9.87 6.01 15/402 77": means of 1, 5 and 15 minutes, running and all threads, a process
  std::istringstream text(loadavg);
  double minute = 0, skipped = 0, running = 0;
  if (!(text >> minute >> skipped >> skipped >> running)) return 0;
  return std::max(0.0, std::min(minute, running - 1));  // without the calling thread
}

double busy_threads_now() {
  std::ifstream file("/proc/loadavg");
  std::string line;
  std::getline(file, line);
  return busy_threads(line);
}

}  // namespace scaletrain::launcher
