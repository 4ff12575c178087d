#include "lib/core/cores.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace scaletrain::core {

int quota_cores(const std::string& cpu_max, int most) {
  std::istringstream text(cpu_max);
  double quota = 0, period = 0;
  if (!(text >> quota >> period) || quota <= 0 || period <= 0) return most;  // "max" is no number
  return std::clamp(static_cast<int>(quota / period), 1, most);
}

int paid_cores(int cores) {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string line;
  std::getline(file, line);
  return quota_cores(line, cores);
}

}  // namespace scaletrain::core
