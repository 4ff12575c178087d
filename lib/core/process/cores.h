// How many processors this process may use.
#pragma once

#include <set>
#include <string>

namespace scaletrain::core {

// The numbers of the CPUs that this process may run on.
std::set<int> allowed_cpus();

// Whole cores that cgroup v2's cpu.max ("200000 100000", "max 100000") allows, at least 1; `most`
// where it sets no limit or cannot be read.
int quota_cores(const std::string& cpu_max, int most);

// Returns how many CPUs this process may use, within its container's quota; at least 1.
int usable_cores();

}  // namespace scaletrain::core
