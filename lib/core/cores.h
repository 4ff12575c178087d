// How many processors this process may use.
#pragma once

#include <string>

namespace scaletrain::core {

// Whole cores that cgroup v2's cpu.max ("200000 100000", "max 100000") allows, at least 1; `most`
// where it sets no limit or cannot be read.
int quota_cores(const std::string& cpu_max, int most);

// Of `cores` those that the container of this process pays for.
int paid_cores(int cores);

}  // namespace scaletrain::core
