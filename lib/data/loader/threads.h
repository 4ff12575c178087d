// How many threads decode where a recipe leaves it open.
#pragma once

namespace scaletrain::data {

inline constexpr int kMaxAutomaticThreads = 16;

// The cores of local rank `local_rank` of `local_world_size`: they are shared out evenly, what is
// left over to the first ranks; at least 1, at most kMaxAutomaticThreads.
int share_of_cores(int cores, int local_rank, int local_world_size);

// This rank's share of the cores that this process may run on and that its container pays for.
int automatic_threads(int local_rank, int local_world_size);

}  // namespace scaletrain::data
