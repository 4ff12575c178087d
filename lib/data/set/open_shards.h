// Opens shards when they are read and limits how many are open, so that a process does not run out
// of file descriptors.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lib/storage/storage.h"
#include "lib/storage/stores.h"

namespace scaletrain::data {

class OpenShards {
 public:
  OpenShards(std::shared_ptr<const storage::Stores> stores, std::vector<std::string> paths,
             std::size_t limit);

  // Returns the opened shard; any thread. Throws core::DataError if it is not the file of
  // `identity`, which was indexed.
  std::shared_ptr<const storage::Object> get(std::int64_t shard,
                                             const storage::Identity& identity) const;

 private:
  std::shared_ptr<const storage::Stores> stores_;
  std::vector<std::string> paths_;
  std::size_t limit_;
  mutable std::mutex mutex_;
  mutable std::vector<std::shared_ptr<const storage::Object>> open_;
  mutable std::deque<std::size_t> order_;  // opening order: the oldest is closed first
};

}  // namespace scaletrain::data
