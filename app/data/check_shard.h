// Everything that is wrong with one shard.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lib/format/quarantine.h"
#include "lib/observe/work_progress.h"
#include "lib/storage/stores.h"

namespace scaletrain::app {

struct CheckRules {
  std::int64_t classes = 0;  // labels must be below; 0: not known
  bool decode = true;        // every image
  int threads = 1;
};

struct ShardReport {
  std::int64_t samples = 0, bytes = 0;
  std::vector<format::Quarantined> problems;    // of samples, or of the whole shard
  std::vector<std::uint64_t> keys;              // XXH3-64 of each, in file order
  std::int64_t ignored = 0;                     // members that are no part of a sample
  std::int64_t misnamed = 0;                    // images whose extension names another format
  std::map<std::int64_t, std::int64_t> labels;  // samples by class
};

// `sha256` is what the shard should have, "" where nobody says. Never throws core::DataError: what
// is wrong is in the report.
ShardReport check_shard(const storage::Stores& stores, const std::string& path,
                        const std::string& sha256, const CheckRules& rules,
                        observe::WorkProgress& progress);

}  // namespace scaletrain::app
