// The ranks of a group find out together whether they can share memory.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "lib/dist/shm/arena.h"

namespace scaletrain::dist {

struct ShmMeeting {
  std::unique_ptr<ShmArena> arena;  // on all ranks or on none
  bool one_host = true;             // all ranks are on one
  std::string why_not;              // they share none: a rank and what it found
};

// Every rank of the group calls it once with a store of the group's own. A host is what has one
// kernel, one numbering of processes and one network. Throws what the store throws.
ShmMeeting meet_in_memory(c10d::Store& store, int rank, int ranks);

// How the slots of so many ranks are made.
ArenaShape arena_shape(int ranks);

}  // namespace scaletrain::dist
