// Checks one shard and lists all its problems.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/format/quarantine.h"
#include "lib/observe/work_progress.h"
#include "lib/storage/stores.h"

namespace scaletrain::app {

struct CheckRules {
  std::int64_t classes = 0;  // upper limit of labels; 0: not known
  bool decode = true;        // decode every image
  int threads = 1;
};

// Reason why a shard could not be checked: it is missing, or the machine failed.
struct Unchecked {
  std::string problem, remedy;
  core::ExitCode code = core::ExitCode::kData;  // kStorage: a restart may help
  bool absent = false;
};

struct CheckedSample {
  std::uint64_t key = 0;             // XXH3-64
  std::int64_t label = -1;           // -1: no valid label, or several
  std::vector<std::int64_t> labels;  // labels, if there are several
};

struct ShardReport {
  std::string name;                           // without its folder
  std::optional<Unchecked> unchecked;         // if set, nothing else is reported
  std::int64_t bytes = 0;                     // size of the file
  std::vector<format::Quarantined> problems;  // per sample, or for the whole shard
  std::vector<CheckedSample> samples;         // in file order
  std::int64_t ignored = 0;                   // members that belong to no sample
  std::int64_t misnamed = 0;                  // images whose extension names another format
};

// `sha256`: expected hash; "": the one in its index, if that is of this version of the shard.
// Reports the problems, or why the shard cannot be checked: missing, not readable, replaced
// meanwhile, no room to decompress it. Throws core::StorageError if a server fails, since the other
// shards would fail too.
ShardReport check_shard(const storage::Stores& stores, const std::string& path,
                        const std::string& sha256, const CheckRules& rules,
                        observe::WorkProgress& progress);

}  // namespace scaletrain::app
