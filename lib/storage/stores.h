// Chooses the storage for a path by its scheme: a local file without one; http, https, s3, gs,
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
  // Endpoint and credentials from the environment, no cache: for programs that read shards once.
  // Decompresses a compressed tar each time it is opened (open_unpacked).
  Stores();
  // Settings from the recipe (/storage, /data/cache); `sharers` processes of the job share the
  // cache. Makes no request before it is needed.
  Stores(const recipe::Storage& settings, const std::optional<recipe::Cache>& cache,
         int sharers = 1);
  ~Stores();  // ends running requests; objects and storages must not be used afterwards
  Stores(const Stores&) = delete;
  Stores& operator=(const Stores&) = delete;

  // Throws core::DataError for an unknown scheme.
  const Storage& of(const std::string& path) const;

  // Ends every running request; later ones fail. Any thread.
  void cancel() const;

  // Opens an object, through the cache if there is one and `path` is remote. A compressed tar is
  // read decompressed from the cache; core::DataError if the recipe has no cache.
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
