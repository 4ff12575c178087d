// Checks the shards of one folder and updates its quarantine.json.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/data/check_shard.h"
#include "lib/format/quarantine.h"
#include "lib/storage/stores.h"

namespace scaletrain::app {

struct UncheckedShard {
  std::string shard;
  Unchecked why;
};

struct FolderReport {
  std::string folder;
  std::vector<format::Quarantined> problems;  // new: not yet listed in quarantine.json
  std::vector<UncheckedShard> unchecked;
  std::vector<format::Quarantined> stale;  // listed before, valid now
  std::vector<std::string> warnings;
  std::int64_t bytes = 0;                                  // size of the shards
  std::int64_t samples = 0;                                // samples that training sees
  std::int64_t left_out_shards = 0, left_out_samples = 0;  // excluded by quarantine.json
  bool rewritten = false, removed = false;                 // changes of quarantine.json by a repair
};

// Checks `shards`, which are all in `folder`. With `repair`, rewrites quarantine.json: the problems
// found now, and the old entries of shards that were not looked at or could not be checked. Removes
// the file if no entry is left. If images are not decoded, no entry is removed from it.
FolderReport check_folder(const storage::Stores& stores, const std::string& folder,
                          const std::vector<std::string>& shards, CheckRules rules, bool repair);

}  // namespace scaletrain::app
