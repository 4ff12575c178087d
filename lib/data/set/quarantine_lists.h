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
  // Reads the list in the folder of every path. Throws core::CheckpointError for a damaged list.
  // Logs a warning with the number of excluded samples and shards.
  QuarantineLists(const std::vector<std::string>& paths, const storage::Stores& stores);

  bool holds_shard(const std::string& path) const;
  std::vector<std::string> keys_of(const std::string& path) const;  // sorted bytewise

 private:
  std::map<std::string, format::Quarantine> by_folder_;
};

}  // namespace scaletrain::data
