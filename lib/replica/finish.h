// Completes a save in the memory of other nodes.
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
  std::int64_t bytes = 0;  // total over all nodes
};

// Marks `save` as complete on the `nodes` that hold files of it. Each file of its manifest must be
// on at least two of them. Throws core::StorageError naming a file of which fewer nodes have a
// copy.
Replicated finish_save(std::vector<Peer>& nodes, const std::string& save,
                       const format::Manifest& manifest);

}  // namespace scaletrain::replica
