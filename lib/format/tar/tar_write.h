// Writes tar files member by member: POSIX ustar, with a pax header for long names. The bytes
// depend only on names and contents: no times, owners or modes.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace scaletrain::format {

class TarWriter {
 public:
  // `sink` receives the file's bytes in order, in pieces of about a megabyte.
  explicit TarWriter(std::function<void(std::span<const std::byte>)> sink);

  // Appends a regular file. `path` is not empty and has no NUL.
  void add(std::string_view path, std::string_view bytes);

  // Writes the two zero blocks at the end; nothing may be added afterwards.
  void finish();

  std::int64_t bytes() const {
    return bytes_;
  }  // bytes written so far; includes the end marker after finish()

  // Returns the number of bytes that add() appends for such a member.
  static std::int64_t member_bytes(std::string_view path, std::int64_t bytes);

 private:
  void append(std::string_view bytes);
  void append_padded(std::string_view bytes);
  void flush();

  std::function<void(std::span<const std::byte>)> sink_;
  std::string buffer_;
  std::int64_t bytes_ = 0;
};

}  // namespace scaletrain::format
