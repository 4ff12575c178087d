// Interface to the disk for files that must survive a crash: checkpoints, indexes, a run's files.
//
// Files are always published in the same way: write to a temporary name, sync the file, rename,
// sync the folder (write_durably). Tests use a disk that stops after any operation and drops
// unsynced data. All functions throw core::StorageError naming the path and errno.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "lib/core/error.h"

namespace scaletrain::core {

// A file being written. It is synced only by sync(); the destructor closes without syncing.
class DiskFile {
 public:
  virtual ~DiskFile() = default;
  virtual void write(std::span<const std::byte> bytes) = 0;  // appends all bytes, also after EINTR
  // Writes bytes that do not change until sync() returns or the file is closed.
  virtual void write_lasting(std::span<const std::byte> bytes) { write(bytes); }
  virtual void sync() = 0;  // fsync; after a failure the file must not be used again
};

class Disk {
 public:
  virtual ~Disk() = default;

  // Creates a file with mode 0644; an existing one is truncated. `expected_bytes` > 0 preallocates.
  virtual std::unique_ptr<DiskFile> create(const std::filesystem::path& path,
                                           std::int64_t expected_bytes = 0) = 0;
  virtual void make_folders(const std::filesystem::path& path) = 0;  // mkdir -p
  virtual void sync_folder(const std::filesystem::path& path) = 0;
  virtual void rename(const std::filesystem::path& from, const std::filesystem::path& to) = 0;
  virtual void make_link(const std::filesystem::path& target,
                         const std::filesystem::path& link) = 0;
  virtual void remove_all(const std::filesystem::path& path) = 0;  // a missing path is no error
  virtual std::int64_t free_bytes(const std::filesystem::path& path) = 0;
  // Adds a hard link, link(2): the bytes stay until the last name is removed. Some file systems
  // have no hard links, and none has them across file systems.
  virtual void link_file(const std::filesystem::path& file, const std::filesystem::path& name) = 0;
};

// Returns the disk of this machine; it has no state.
Disk& system_disk();

// Writes `bytes` to `path` completely or not at all: temporary name in the same folder, sync,
// rename, sync of the folder.
void write_durably(Disk& disk, const std::filesystem::path& path, std::string_view bytes);

// Points the symbolic link `link` to `target` (relative) by making a new link and renaming it.
void replace_link(Disk& disk, const std::filesystem::path& target,
                  const std::filesystem::path& link);

// Reads a regular file of at most `max_bytes`. Throws core::Error of `code` with the path and
// reason: missing, not a regular file, too large; throw_read_fault() reports faults of the machine.
std::string read_file(const std::filesystem::path& path, std::int64_t max_bytes, ExitCode code);

}  // namespace scaletrain::core
