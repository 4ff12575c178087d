// Brings back a checkpoint from the memory of nodes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lib/core/disk/disk.h"
#include "lib/replica/peer.h"

namespace scaletrain::replica {

struct Fetched {
  std::filesystem::path checkpoint;
  std::int64_t step = 0;
  std::vector<std::string> nodes;  // the places that gave files
};

// Copies the newest that is newer than `beyond` and whole into `checkpoints`, each file from a node
// whose copy has the sum that the manifest says; nullopt: there is none. Damaged or missing files
// and unresponsive nodes are reported, and the next node is tried. Throws core::StorageError where
// the folder cannot be written.
std::optional<Fetched> fetch_newest(core::Disk& disk, const std::vector<Address>& nodes,
                                    const std::filesystem::path& checkpoints, std::int64_t beyond,
                                    const std::function<void(const std::string&)>& report,
                                    Patience patience = {});

}  // namespace scaletrain::replica
