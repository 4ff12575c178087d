// Where bytes live, by path: read a range, list, write, write-if-absent. The data path knows only
// this interface; `file_storage` is the machine's own file system.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace scaletrain::storage {

// What tells one version of an object from another without reading it.
struct Identity {
  std::int64_t bytes = 0;
  std::int64_t mtime_ns = 0;  // since 1970

  bool operator==(const Identity&) const = default;
};

// An object opened for reading, as it was when it was opened. Any thread may read.
class Object {
 public:
  virtual ~Object() = default;
  virtual Identity identity() const = 0;
  // Fills `out` with the bytes from `offset` on. Throws core::DataError when the object ends
  // before, core::StorageError when the read fails.
  virtual void read(std::int64_t offset, std::span<std::byte> out) const = 0;
};

// Errors name the path. What is not there, or may not be read, is core::DataError (a restart does
// not help); everything else is core::StorageError.
class Storage {
 public:
  virtual ~Storage() = default;

  virtual std::unique_ptr<Object> open(const std::string& path) const = 0;

  struct Entry {
    std::string name;  // without the folder
    bool folder = false;
  };
  // What `folder` holds, sorted bytewise by name.
  virtual std::vector<Entry> list(const std::string& folder) const = 0;

  // Puts `bytes` at `path`, whole or not at all; an older object is replaced.
  virtual void write(const std::string& path, std::string_view bytes) const = 0;

  // As write, but false, with nothing changed, when there is an object already: of several writers
  // exactly one gets true.
  virtual bool write_if_absent(const std::string& path, std::string_view bytes) const = 0;
};

// Local files, read with pread: a mapping of a file that shrinks would end in SIGBUS.
const Storage& file_storage();

}  // namespace scaletrain::storage
