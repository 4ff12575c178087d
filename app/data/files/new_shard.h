// One shard that is being written: a file or an object that appears whole, or not at all.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "lib/format/hashed_file.h"
#include "lib/storage/stores.h"

namespace scaletrain::app {

class NewShard {
 public:
  virtual ~NewShard() = default;  // removes what was not published

  virtual void write(std::span<const std::byte> bytes) = 0;

  // Nothing is written afterwards. An object is put in its place now, then its index beside it
  // where that is asked for; a file waits for publish(). Throws core::UsageError for an object that
  // another writer put there in the meantime.
  virtual format::FileEntry finish(bool with_index) = 0;

  // Puts a file in its place, then its index; the folder is not synced.
  virtual void publish() {}
};

// A remote one is held in memory until it is published, and has 5 GiB at most, which object stores
// take at once. `stores` must outlive it.
std::unique_ptr<NewShard> new_shard(const storage::Stores& stores, const std::string& path);

}  // namespace scaletrain::app
