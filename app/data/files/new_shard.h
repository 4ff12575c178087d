// A shard being written: a file or object that appears atomically.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "lib/format/hashed_file.h"
#include "lib/storage/stores.h"

namespace scaletrain::app {

class NewShard {
 public:
  virtual ~NewShard() = default;  // discards unpublished contents

  virtual void write(std::span<const std::byte> bytes) = 0;

  // Ends writing. An object is published now, then its index beside it if requested; a file waits
  // for publish(). Throws core::UsageError if another writer created the object meanwhile.
  virtual format::FileEntry finish(bool with_index) = 0;

  // Publishes a file, then its index; does not sync the folder.
  virtual void publish() {}
};

// A remote shard is kept in memory until it is published; its limit is 5 GiB, the largest single
// upload. `stores` must outlive it.
std::unique_ptr<NewShard> new_shard(const storage::Stores& stores, const std::string& path);

}  // namespace scaletrain::app
