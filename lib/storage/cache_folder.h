// A folder of complete files by key with a size limit, shared by the processes of one machine
// (docs/reference/formats/cache.md).
//
// KEY.data has the bytes; KEY.json, written after it and removed before it, marks it as complete
// and has its hash. KEY.part is being written by the process that holds its lock; an unlocked part
// was left by a process that ended. Nothing is synced: after a crash of the machine the hash
// reveals lost data, which is downloaded again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/core/descriptor.h"
#include "lib/core/disk/disk.h"

namespace scaletrain::storage {

struct CacheEntry {
  std::int64_t bytes = 0;
  std::string hash;  // XXH3-64 of blocks of 1 MiB, each seeded with the previous hash

  bool operator==(const CacheEntry&) const = default;
};

class CacheFolder {
 public:
  // Creates the folder. Throws core::StorageError.
  CacheFolder(std::filesystem::path folder, std::int64_t max_bytes);

  std::filesystem::path data_path(const std::string& key) const {
    return folder_ / (key + ".data");
  }

  // Returns nullopt if there is no complete entry.
  std::optional<CacheEntry> find(const std::string& key) const;

  // True if the bytes of KEY.data match the hash of the entry.
  bool verify(const std::string& key, const CacheEntry& entry) const;

  // Marks the entry as used now: the least recently used entry is removed first.
  void touch(const std::string& key) const;

  void remove(const std::string& key) const;

  // True if an object of this size can be cached at all.
  bool fits(std::int64_t bytes) const { return bytes <= max_bytes_; }
  std::int64_t max_bytes() const { return max_bytes_; }

  // Removes entries if one has become larger than the room made for it.
  void keep_within_limit() const;

  // Writes one entry; destroying it without publish() discards the entry.
  class Writer {
   public:
    Writer(Writer&&) noexcept = default;
    Writer& operator=(Writer&&) = delete;
    ~Writer();

    void write(std::span<const std::byte> bytes);
    CacheEntry publish();

   private:
    friend class CacheFolder;
    Writer() = default;
    void flush();

    const CacheFolder* folder_ = nullptr;
    std::string key_;
    core::Descriptor lock_;  // empty after publish()
    std::unique_ptr<core::DiskFile> file_;
    std::vector<std::byte> block_;
    CacheEntry entry_;
    std::uint64_t hash_ = 0;
  };

  // Makes room for `bytes` by removing entries and starts to write; nullopt while another process
  // or thread writes this entry, or others that leave no room for it.
  std::optional<Writer> begin(const std::string& key, std::int64_t bytes) const;

  // Returns the bytes of the entry that another process or thread has written so far; -1 if none is
  // writing it.
  std::int64_t being_written(const std::string& key) const;

  // Returns the sum over all entries being written; 0 if there are none.
  std::int64_t all_being_written() const;

 private:
  std::filesystem::path part_path(const std::string& key) const {
    return folder_ / (key + ".part");
  }
  std::filesystem::path json_path(const std::string& key) const {
    return folder_ / (key + ".json");
  }
  core::Descriptor lock_folder() const;
  bool make_room(std::int64_t bytes) const;

  std::filesystem::path folder_;
  std::int64_t max_bytes_;
};

}  // namespace scaletrain::storage
