// Restores a checkpoint from the memory of other nodes (peer checkpoints).
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
  std::vector<std::string> nodes;  // nodes that provided files
};

// Copies the newest complete checkpoint after step `beyond` into `checkpoints`, each file from a
// node whose copy matches the manifest's checksum; nullopt if there is none. Damaged or missing
// files and unresponsive nodes are reported, and the next node is tried. Throws core::StorageError
// if the folder cannot be written.
std::optional<Fetched> fetch_newest(core::Disk& disk, const std::vector<Address>& nodes,
                                    const std::filesystem::path& checkpoints, std::int64_t beyond,
                                    const std::function<void(const std::string&)>& report,
                                    Patience patience = {});

}  // namespace scaletrain::replica
