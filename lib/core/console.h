// Writes to a standard stream without blocking: a pipe with a stalled reader, or a stopped terminal
// (Ctrl-S), must not keep this process from its work.
#pragma once

#include <chrono>
#include <cstddef>
#include <string_view>

#include "lib/core/descriptor.h"

namespace scaletrain::core {

class Console {
 public:
  // Writes to `fd`, which the caller owns. A pipe or terminal is opened again to make it
  // non-blocking, since all users of `fd` would share that flag. If it cannot be opened again, it
  // is polled for room before each write.
  explicit Console(int fd);

  // True if it is the same stream as standard error of this process.
  bool is_error_stream() const { return is_error_stream_; }

  int fd() const { return again_ ? again_.get() : fd_; }  // to poll for room; -1 when gone
  bool gone() const { return fd_ < 0; }
  std::size_t taken() const { return taken_; }  // bytes, since construction

  // Writes as much of `text` as possible at once and returns the number of bytes; 0: none now. The
  // console is gone if its reader has closed it.
  std::size_t write_some(std::string_view text);
  // Waits for room; returns false on timeout.
  bool wait(std::chrono::milliseconds time) const;
  void give_up();

 private:
  int fd_;
  Descriptor again_;
  bool is_socket_ = false;
  bool never_waits_ = false;  // a file or /dev/null: there is always room
  bool is_error_stream_ = false;
  std::size_t taken_ = 0;
};

}  // namespace scaletrain::core
