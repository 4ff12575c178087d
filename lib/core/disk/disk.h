// The only door to the disk for what must survive a crash: checkpoints, indexes, the run's files.
//
// Publishing is always the same: write to a temporary name, sync the file, rename, sync the folder
// (write_durably). Tests replace the disk by one that stops after any operation and drops what was
// not synced. Every function throws core::StorageError that names the path and errno.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "lib/core/error.h"

namespace scaletrain::core {

// A file being written. Not synced until sync() returns; the destructor closes without syncing.
class DiskFile {
 public:
  virtual ~DiskFile() = default;
  virtual void write(std::span<const std::byte> bytes) = 0;  // appends, whole, whatever EINTR
  // Writes bytes that stay as they are until sync() returns or the file is closed.
  virtual void write_lasting(std::span<const std::byte> bytes) { write(bytes); }
  virtual void sync() = 0;  // fsync; after a failure the file must not be used again
};

class Disk {
 public:
  virtual ~Disk() = default;

  // A new file, mode 0644; an existing one is truncated. `expected_bytes` > 0 preallocates.
  virtual std::unique_ptr<DiskFile> create(const std::filesystem::path& path,
                                           std::int64_t expected_bytes = 0) = 0;
  virtual void make_folders(const std::filesystem::path& path) = 0;  // mkdir -p
  virtual void sync_folder(const std::filesystem::path& path) = 0;
  virtual void rename(const std::filesystem::path& from, const std::filesystem::path& to) = 0;
  virtual void make_link(const std::filesystem::path& target,
                         const std::filesystem::path& link) = 0;
  virtual void remove_all(const std::filesystem::path& path) = 0;  // absent is fine
  virtual std::int64_t free_bytes(const std::filesystem::path& path) = 0;
  // A second name of a file, link(2): its bytes stay until the last one is removed. Not every file
  // system has that, and none over its bounds.
  virtual void link_file(const std::filesystem::path& file, const std::filesystem::path& name) = 0;
};

// The machine's own disk; has no state.
Disk& system_disk();

// Writes `bytes` to `path` whole or not at all: temporary name in the same folder, sync, rename,
// sync of the folder.
void write_durably(Disk& disk, const std::filesystem::path& path, std::string_view bytes);

// Points the symbolic link `link` at `target` (relative) by making a new link and renaming it.
void replace_link(Disk& disk, const std::filesystem::path& target,
                  const std::filesystem::path& link);

// The bytes of a regular file of at most `max_bytes`. Throws core::Error of `code` naming path and
// reason: absent, not a regular file, too large; of a fault of the machine as throw_read_fault.
std::string read_file(const std::filesystem::path& path, std::int64_t max_bytes, ExitCode code);

}  // namespace scaletrain::core
