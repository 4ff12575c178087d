// The end of a save in the memory of nodes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/replica/peer.h"

namespace scaletrain::replica {

// Result of replicating a checkpoint.
struct Replicated {
  int nodes = 0;           // number of nodes that hold files of it
  std::int64_t bytes = 0;  // in all of them together
};

// Declares `save` whole on those of `nodes` that hold files of it, where each file of its manifest
// lies on two of them at least. Throws core::StorageError naming a file that does not.
Replicated finish_save(std::vector<Peer>& nodes, const std::string& save,
                       const format::Manifest& manifest);

}  // namespace scaletrain::replica
