// Default number of decoding threads.
#pragma once

namespace scaletrain::data {

inline constexpr int kMaxAutomaticThreads = 16;

// Returns the number of cores of local rank `local_rank`: cores are divided evenly among
// `local_world_size` ranks, the first ranks get the remainder. At least 1, at most
// kMaxAutomaticThreads.
int share_of_cores(int cores, int local_rank, int local_world_size);

// Returns this rank's share of the cores that this process may run on, within the container's CPU
// limit.
int automatic_threads(int local_rank, int local_world_size);

}  // namespace scaletrain::data
