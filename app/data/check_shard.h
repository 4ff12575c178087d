// Everything that is wrong with one shard.
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
  std::int64_t classes = 0;  // labels must be below; 0: not known
  bool decode = true;        // every image
  int threads = 1;
};

// Why nothing is known of a shard: it is not there, or the machine failed.
struct Unchecked {
  std::string problem, remedy;
  core::ExitCode code = core::ExitCode::kData;  // kStorage: a restart may help
  bool absent = false;
};

struct CheckedSample {
  std::uint64_t key = 0;             // XXH3-64
  std::int64_t label = -1;           // -1: no valid label, or several
  std::vector<std::int64_t> labels;  // set if there are several
};

struct ShardReport {
  std::string name;                           // without its folder
  std::optional<Unchecked> unchecked;         // then nothing else is reported
  std::int64_t bytes = 0;                     // size of the file
  std::vector<format::Quarantined> problems;  // per sample, or for the whole shard
  std::vector<CheckedSample> samples;         // in file order
  std::int64_t ignored = 0;                   // members that are no part of a sample
  std::int64_t misnamed = 0;                  // images whose extension names another format
};

// `sha256` is what the shard should have, "" for what its index holds, if it is of this version of
// the shard. The report lists the problems, or the reason why the shard cannot be checked: absent,
// not readable, replaced meanwhile, no room to decompress it. Throws core::StorageError where a
// server fails, which would fail for the other shards too.
ShardReport check_shard(const storage::Stores& stores, const std::string& path,
                        const std::string& sha256, const CheckRules& rules,
                        observe::WorkProgress& progress);

}  // namespace scaletrain::app
