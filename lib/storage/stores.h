// The storage that a path needs, by its scheme: a local file without one; http, https, s3, gs,
// pipe.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lib/recipe/sections/data/data.h"
#include "lib/recipe/sections/data/storage.h"
#include "lib/storage/storage.h"

namespace scaletrain::storage {

class Cache;
class HttpCaller;

class Stores {
 public:
  // Endpoint and credentials from the environment, no cache: for programs that go through shards
  // once. They decompress a compressed tar whenever they open it (open_unpacked).
  Stores();
  // As the recipe says (/storage, /data/cache); `sharers` processes of the job share the cache.
  // Nothing is asked of a server before it is needed.
  Stores(const recipe::Storage& settings, const std::optional<recipe::Cache>& cache,
         int sharers = 1);
  ~Stores();  // ends what is under way; objects and storages end with it
  Stores(const Stores&) = delete;
  Stores& operator=(const Stores&) = delete;

  // Throws core::DataError for an unknown scheme.
  const Storage& of(const std::string& path) const;

  // Ends every request under way; later ones fail. Any thread.
  void cancel() const;

  // For reading, through the cache where there is one and `path` is remote. A compressed tar is
  // what it holds, out of the cache; core::DataError where a recipe names none.
  std::unique_ptr<Object> open(const std::string& path) const;

  // Prefetches the objects to open next into the cache, in this order; no-op without a cache.
  // Replaces earlier requests that have not begun.
  void prefetch(const std::vector<std::string>& paths) const;

  // Folder of the indexes that belong to cached objects; "" without a cache.
  const std::string& index_folder() const { return index_folder_; }

 private:
  std::unique_ptr<Storage> make(const std::string& scheme) const;

  recipe::Storage settings_;
  bool unpacks_ = false;
  std::string index_folder_;
  std::unique_ptr<HttpCaller> caller_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::unique_ptr<Storage>> by_scheme_;
  std::unique_ptr<Cache> cache_;  // uses the storages
};

}  // namespace scaletrain::storage
