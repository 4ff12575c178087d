// Determines whether the ranks of a group can share memory.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "lib/dist/shm/arena.h"

namespace scaletrain::dist {

struct ShmMeeting {
  std::unique_ptr<ShmArena> arena;  // set on all ranks or on none
  bool one_host = true;             // true if all ranks are on one host
  std::string why_not;              // reason if they cannot share memory: a rank and what it found
};

// All ranks of the group call it once with a store of the group's own. Ranks are on one host if
// they have the same kernel, process numbering and network. Throws the errors of the store.
ShmMeeting meet_in_memory(c10d::Store& store, int rank, int ranks);

// Returns the slot layout for this number of ranks.
ArenaShape arena_shape(int ranks);

}  // namespace scaletrain::dist
