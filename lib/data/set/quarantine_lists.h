// Samples and shards that quarantine.json beside the shards excludes, local or remote.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lib/format/quarantine.h"
#include "lib/storage/stores.h"

namespace scaletrain::data {

class QuarantineLists {
 public:
  // Reads the list of every folder that a path is in. Throws core::CheckpointError for a damaged
  // one. Says in a warning how much is left out of these shards.
  QuarantineLists(const std::vector<std::string>& paths, const storage::Stores& stores);

  bool holds_shard(const std::string& path) const;
  std::vector<std::string> keys_of(const std::string& path) const;  // sorted bytewise

 private:
  std::map<std::string, format::Quarantine> by_folder_;
};

}  // namespace scaletrain::data
