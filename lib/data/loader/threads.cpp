#include "lib/data/loader/threads.h"

#include <algorithm>

#include "lib/core/process/cores.h"

namespace scaletrain::data {

int share_of_cores(int cores, int local_rank, int local_world_size) {
  const int share = cores / local_world_size + (local_rank < cores % local_world_size ? 1 : 0);
  return std::clamp(share, 1, kMaxAutomaticThreads);
}

int automatic_threads(int local_rank, int local_world_size) {
  return share_of_cores(core::usable_cores(), local_rank, local_world_size);
}

}  // namespace scaletrain::data
