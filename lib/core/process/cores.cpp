#include "lib/core/process/cores.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace scaletrain::core {

std::set<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::set<int> result;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return result;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &set)) result.insert(cpu);
  }
  return result;
}

int quota_cores(const std::string& cpu_max, int most) {
  std::istringstream text(cpu_max);
  double quota = 0, period = 0;
  // "max" is not a number.
  if (!(text >> quota >> period) || quota <= 0 || period <= 0) return most;
  return std::clamp(static_cast<int>(quota / period), 1, most);
}

int usable_cores() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string line;
  std::getline(file, line);
  return quota_cores(line, std::max(1, static_cast<int>(allowed_cpus().size())));
}

}  // namespace scaletrain::core
