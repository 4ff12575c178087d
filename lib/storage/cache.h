// Cache of remote objects on this node's disk, shared by its ranks and by jobs.
//
// An entry belongs to one version of an object (path, size, ETag), so a replaced object is
// downloaded again. The first process that needs an object downloads it; its MD5 is compared with
// the server's, and its own hash before the first read of every process. If room is needed, the
// least recently used entries are removed; a reader of a removed entry downloads it again.
//
// Compressed tars (lib/core/text/compressed_name.h), local or remote, are stored decompressed.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "lib/storage/cache_folder.h"
#include "lib/storage/storage.h"

namespace scaletrain::storage {

class Cache {
 public:
  // `patience_s`: longest time that another process may take without writing a byte; `sharers`:
  // number of processes of this job that share the folder. Throws core::StorageError if the folder
  // cannot be created.
  Cache(std::filesystem::path folder, std::int64_t max_bytes, double patience_s, int sharers = 1);
  ~Cache();  // stops prefetching
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  // Opens `path` of `origin` from this node's disk, downloading it if needed. An object larger than
  // the cache is read from the origin. `origin` and the cache must outlive the object. Any thread.
  // Throws the errors of the origin, and core::DataError for a compressed tar that is damaged or
  // larger than the cache when decompressed.
  std::unique_ptr<Object> open(const Storage& origin, const std::string& path);

  struct Wanted {
    const Storage* origin;
    std::string path;
  };
  // Names the objects to open next, in order; replaces earlier ones not yet begun. Threads of the
  // cache prefetch as many as fit into this process's share of half of it. Errors surface on
  // opening.
  void prefetch(std::vector<Wanted> wanted);

 private:
  class CachedObject;

  // Cache key and identity of an object. For a command (pipe:) or a compressed tar, the identity is
  // known only from the entry.
  struct Version {
    std::string key;
    Identity source;    // identity of the object at its origin; empty for a command
    Identity identity;  // identity of the cached bytes
  };
  static std::int64_t room_for(const Version& version) {
    return std::max(version.identity.bytes, version.source.bytes);
  }
  Version version_of(const Storage& origin, const std::string& path);
  CacheEntry fetch(const Storage& origin, const std::string& path, const Version& version);
  std::optional<CacheEntry> copy(const Storage& origin, const std::string& path,
                                 const Version& version, CacheFolder::Writer& writer);
  void check_once(const Storage& origin, const std::string& path, const Version& version);
  std::int64_t reserve_for(const std::string& path);
  void fetch_ahead();

  CacheFolder folder_;
  double patience_s_;
  std::mutex mutex_;
  std::map<std::string, Version> versions_;  // versions of the paths looked up so far
  std::set<std::string> checked_;            // keys whose hash was compared

  std::condition_variable wanted_there_;
  std::deque<Wanted> wanted_;
  std::int64_t ahead_bytes_ = 0;     // bytes prefetched for the newest request, including:
  std::int64_t reserved_bytes_ = 0;  // reserved for running downloads of unknown size
  std::int64_t largest_made_bytes_ = 0;
  std::int64_t most_ahead_bytes_;
  std::atomic<bool> stop_ = false;
  std::vector<std::thread> fetchers_;
};

}  // namespace scaletrain::storage
