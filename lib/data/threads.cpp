#include "lib/data/threads.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace scaletrain::data {
int share_of_cores(int cores, int local_rank, int local_world_size) {
  const int share = cores / local_world_size + (local_rank < cores % local_world_size ? 1 : 0);
  return std::clamp(share, 1, kMaxAutomaticThreads);
}

int quota_cores(const std::string& cpu_max, int most) {
  std::istringstream text(cpu_max);
  double quota = 0, period = 0;
  if (!(text >> quota >> period) || quota <= 0 || period <= 0) return most;  // "max" is no number
  return std::clamp(static_cast<int>(quota / period), 1, most);
}

int automatic_threads(int local_rank, int local_world_size) {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int cores = ::sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string line;
  std::getline(file, line);
  return share_of_cores(quota_cores(line, cores), local_rank, local_world_size);
}

}  // namespace scaletrain::data
