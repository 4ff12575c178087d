// Storage interface, by path: read a range, list, write, write-if-absent. The data path uses only
// this interface; Stores (lib/storage/stores.h) selects the storage of a path.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/core/error.h"

namespace scaletrain::storage {

// Identifies a version of an object without reading its content.
struct Identity {
  std::int64_t bytes = 0;
  std::int64_t mtime_ns = 0;  // since 1970; 0 if the storage does not provide it
  std::string etag = {};      // ETag of a remote object, as the server wrote it; "" for a file
  std::string md5 = {};       // in hexadecimal, if the server provides it

  bool operator==(const Identity&) const = default;
};

// An object opened for reading, as it was when it was opened. Any thread may read.
class Object {
 public:
  virtual ~Object() = default;
  virtual Identity identity() const = 0;
  // True if read() works. Some servers send only whole objects; use Storage::stream for those.
  virtual bool has_ranges() const { return true; }
  // Fills `out` with the bytes from `offset` on. Throws core::DataError if the object is shorter or
  // was replaced, core::StorageError if reading fails; `out` is then undefined.
  virtual void read(std::int64_t offset, std::span<std::byte> out) const = 0;
};

// An object read once from front to end, by one thread.
class Stream {
 public:
  virtual ~Stream() = default;
  // Reads up to out.size() bytes; returns 0 at the end. Throws like Object::read().
  virtual std::size_t read(std::span<std::byte> out) = 0;
};

// Source of a large object to upload: any range may be read repeatedly.
struct Source {
  std::int64_t bytes = 0;
  // Fills `out` from `offset` on; may be called from several threads.
  std::function<void(std::int64_t offset, std::span<std::byte> out)> read;
};

// There is no object at the path.
struct AbsentError : core::DataError {
  using DataError::DataError;
};

// Status 401 or 403: the user must act; a restart with new credentials helps.
struct ForbiddenError : core::StorageError {
  using StorageError::StorageError;
};

// Errors name the path (core::shown_path). An absent object (AbsentError) or an unreadable file is
// core::DataError (a restart does not help); everything else is core::StorageError.
class Storage {
 public:
  virtual ~Storage() = default;

  virtual std::unique_ptr<Object> open(const std::string& path) const = 0;

  // Streams an object. Default: reads ranges of the opened object.
  virtual std::unique_ptr<Stream> stream(const std::string& path) const;

  struct Entry {
    std::string name;  // without the folder
    bool folder = false;
  };
  // Lists the entries of `folder`, sorted bytewise by name.
  virtual std::vector<Entry> list(const std::string& folder) const = 0;

  // Writes `bytes` to `path` atomically and replaces an older object.
  virtual void write(const std::string& path, std::string_view bytes) const = 0;

  // Like write(), but changes nothing and returns false if an object exists: of several writers
  // exactly one gets true.
  virtual bool write_if_absent(const std::string& path, std::string_view bytes) const = 0;

  // Like write, for content larger than memory. Default: throws core::StorageError, as a read-only
  // storage does.
  virtual void upload(const std::string& path, const Source& source) const;

  // Removes the object, if it exists. Default: throws, like upload.
  virtual void remove(const std::string& path) const;

  // Removes unfinished uploads of killed programs below `folder`: they are invisible but cost
  // money.
  virtual void remove_unfinished(const std::string& folder) const;
};

// Streams `object` from the front, requesting large pieces.
std::unique_ptr<Stream> stream_of(std::unique_ptr<const Object> object);

// Opens an object; nullptr if it does not exist, or if the server does not reveal whether it does.
// Failing to open an existing object is an error.
std::unique_ptr<Object> open_if_there(const Storage& storage, const std::string& path);

// Reads a whole small object; nullopt if it does not exist, or if the server does not reveal
// whether it does. Failing to read an existing object is an error; core::DataError for more than
// `max_bytes`.
std::optional<std::string> read_if_there(const Storage& storage, const std::string& path,
                                         std::int64_t max_bytes);

// Storage for local files, read with pread(2): a mapping of a file that shrinks would end in
// SIGBUS.
const Storage& file_storage();

}  // namespace scaletrain::storage
