// Token files cut into windows of a context's length, numbered through file by file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/data/open_shards.h"
#include "lib/format/token_runs.h"
#include "lib/storage/storage.h"

namespace scaletrain::data {

struct TokenOptions {
  std::int64_t context = 1024;   // tokens of a window, and one more as the last target
  std::int64_t token_bytes = 2;  // of a .bin without a header: 2 or 4
  // As in OpenOptions (lib/data/dataset.h).
  std::shared_ptr<const storage::Stores> stores = std::make_shared<storage::Stores>();
};

class TokenSet {
 public:
  // Opens every file (lib/format/token_runs.h). Throws core::DataError: a missing or damaged file,
  // not one whole window in all of them.
  TokenSet(const std::vector<std::string>& paths, const TokenOptions& options);

  std::int64_t context() const { return options_.context; }

  // Windows of every file: a run of n tokens has floor((n - 1) / context), beginning at 0, context,
  // 2 context, ...; what is left over at a run's end is not used.
  const std::vector<std::int64_t>& window_counts() const { return counts_; }

  // Window `window` of file `file`: context + 1 tokens; of which the first `context` are the input
  // and the last `context` the targets. Any thread.
  void read(std::int64_t file, std::int64_t window, std::span<std::int64_t> tokens) const;

  const std::string& name(std::int64_t file) const;  // base name

 private:
  struct File {
    std::string name;
    storage::Identity identity;
    std::vector<format::TokenRun> runs;
    std::vector<std::int64_t> ends;  // windows up to the end of each run
  };

  TokenOptions options_;
  std::vector<File> files_;
  std::vector<std::int64_t> counts_;
  OpenShards open_;
};

}  // namespace scaletrain::data
