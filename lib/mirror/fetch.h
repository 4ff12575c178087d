// The way back: from the place of a run's copies into its folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lib/core/disk.h"
#include "lib/storage/storage.h"

namespace scaletrain::mirror {

// A copy by what it is called: one whose manifest is missing is among them.
struct Copy {
  std::int64_t step = 0;
  std::string url;  // of its folder
};

// The copies at `place`, newest first; of one step the one that its plain name means first. Empty
// where there is no such folder. Throws what Storage::list throws.
std::vector<Copy> list_copies(const storage::Storage& storage, const std::string& place);

struct Fetched {
  std::filesystem::path checkpoint = {};
  std::int64_t step = 0;
  std::int64_t bytes = 0;
};

// Copies the newest checkpoint at `place` that is newer than `beyond` and whole into the folder
// `checkpoints` of a run, there whole or absent as one that was saved (lib/format). Those that are
// not whole are passed over and reported through `report`; nullopt: there is none. Throws
// core::StorageError where the place cannot be read or the disk cannot be written: what cannot be
// read now may be the newest.
std::optional<Fetched> fetch_newest(core::Disk& disk, const storage::Storage& storage,
                                    const std::string& place,
                                    const std::filesystem::path& checkpoints, std::int64_t beyond,
                                    const std::function<void(const std::string&)>& report);

}  // namespace scaletrain::mirror
