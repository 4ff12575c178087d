// Number of CPUs that this process may use.
#pragma once

#include <set>
#include <string>

namespace scaletrain::core {

// Returns the numbers of the CPUs that this process may run on.
std::set<int> allowed_cpus();

// Returns the whole cores that cgroup v2's cpu.max ("200000 100000", "max 100000") allows, at least
// 1; `most` if it sets no limit or cannot be read.
int quota_cores(const std::string& cpu_max, int most);

// Returns how many CPUs this process may use, within its container's quota; at least 1.
int usable_cores();

}  // namespace scaletrain::core
