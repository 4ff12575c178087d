// How many threads decode where a recipe leaves it open.
#pragma once

#include <string>

namespace scaletrain::data {

inline constexpr int kMaxAutomaticThreads = 16;

// The cores of local rank `local_rank` of `local_world_size`: they are shared out evenly, what is
// left over to the first ranks; at least 1, at most kMaxAutomaticThreads.
int share_of_cores(int cores, int local_rank, int local_world_size);

// Whole cores that cgroup v2's cpu.max ("200000 100000", "max 100000") allows, at least 1; `most`
// where it sets no limit or cannot be read.
int quota_cores(const std::string& cpu_max, int most);

// This rank's share of the cores that this process may run on and that its container pays for.
int automatic_threads(int local_rank, int local_world_size);

}  // namespace scaletrain::data
