// Restores a checkpoint from its remote copy into a run's folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lib/core/disk/disk.h"
#include "lib/storage/storage.h"

namespace scaletrain::mirror {

// A remote copy, found by its name; its manifest may be missing.
struct Copy {
  std::int64_t step = 0;
  std::string url;  // address of its folder
};

// Lists the copies at `place`, newest first; for a step with two, the one with the plain name
// first. Empty if the folder does not exist. Throws the errors of Storage::list.
std::vector<Copy> list_copies(const storage::Storage& storage, const std::string& place);

struct Fetched {
  std::filesystem::path checkpoint = {};
  std::int64_t step = 0;
  std::int64_t bytes = 0;
};

// Copies the newest complete checkpoint at `place` that is newer than step `beyond` into a run's
// folder `checkpoints`, atomically as a saved one (lib/format). Skips incomplete copies and passes
// a message to `report`; nullopt: no such copy. Throws core::StorageError if the place cannot be
// read or the disk cannot be written, as an unreadable copy may be the newest.
std::optional<Fetched> fetch_newest(core::Disk& disk, const storage::Storage& storage,
                                    const std::string& place,
                                    const std::filesystem::path& checkpoints, std::int64_t beyond,
                                    const std::function<void(const std::string&)>& report);

}  // namespace scaletrain::mirror
