// Reads tar files (ustar, pax, GNU long names) member by member, starting at any member
// (docs/reference/formats/tar.md).
//
// Stricter than common readers, because a training set must not lose samples silently: checks every
// header's checksum, that every member lies inside the file, and that the file ends with two zero
// blocks and only zeros after them. Never extracts anything to a disk.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace scaletrain::format {

inline constexpr std::int64_t kTarBlock = 512;
inline constexpr std::int64_t kMaxMemberBytes = std::int64_t{64} << 20;  // limit for a regular file

// Fills the span with the file's bytes from an offset on; throws when the file ends before.
using ReadAt = std::function<void(std::int64_t, std::span<std::byte>)>;

struct TarMember {
  std::string path;        // as stored, any bytes: show it with shown_name()
  bool regular = false;    // a regular file; links, folders and devices are not
  std::int64_t begin = 0;  // offset of its first header block, extended headers included
  std::int64_t data = 0;   // offset of its bytes
  std::int64_t bytes = 0;
};

class TarReader {
 public:
  // Reads a file of `file_bytes` from the header at `begin` on, with a first window of
  // `window_bytes`. `name` is the file's name in messages; `name` and `read` must outlive the
  // reader.
  TarReader(const std::string& name, std::int64_t file_bytes, const ReadAt& read,
            std::int64_t begin = 0, std::int64_t window_bytes = 1 << 16);

  // Returns the next member, or nullopt at the end marker. Throws core::DataError naming file and
  // byte.
  std::optional<TarMember> next();

  // Like next(), but reuses the memory of `member`; false at the end marker.
  bool next(TarMember& member);

  // Returns bytes of the file, read together with the following ones; valid until the next call of
  // any function.
  std::span<const std::byte> bytes(std::int64_t offset, std::int64_t count) {
    return fetch(offset, count);
  }

 private:
  std::span<const std::byte> fetch(std::int64_t offset, std::int64_t bytes);
  void refuse_if_placeholder();
  std::string read_extended(char type, std::int64_t data, std::int64_t bytes);
  void check_end(std::int64_t offset);
  [[noreturn]] void fail(std::int64_t offset, const std::string& found,
                         const std::string& remedy) const;

  const std::string& name_;
  std::int64_t file_bytes_;
  const ReadAt& read_;
  std::int64_t offset_;
  std::vector<std::byte> window_;  // first held_ bytes: the file from window_begin_ on
  std::int64_t window_begin_ = 0, held_ = 0;
  std::int64_t window_bytes_;  // size of the next read
};

// Returns a member's name for messages: control characters escaped, a long name shortened.
std::string shown_name(std::string_view name);

}  // namespace scaletrain::format
