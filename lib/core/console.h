// A standard stream to write to without being held up by who reads it: a pipe whose reader stands
// still, or a terminal that was stopped (Ctrl-S), must not keep a process from stopping others.
#pragma once

#include <chrono>
#include <cstddef>
#include <string_view>

#include "lib/core/descriptor.h"

namespace scaletrain::core {

class Console {
 public:
  // Writes to `fd`, which stays the caller's. A pipe or a terminal is opened once more, to be
  // non-blocking: set on `fd` itself, all that share it would see the flag. If it cannot be opened
  // again, it is asked for room before each write.
  explicit Console(int fd);

  // True if it leads to where standard error of this process leads.
  bool is_error_stream() const { return is_error_stream_; }

  int fd() const { return again_ ? again_.get() : fd_; }  // to poll for room; -1 when gone
  bool gone() const { return fd_ < 0; }
  std::size_t taken() const { return taken_; }  // bytes, since construction

  // Writes as much of `text` as fits at once and returns the bytes; 0: nothing now. It is gone when
  // nobody reads it.
  std::size_t write_some(std::string_view text);
  // Until there is room; false where there was none for so long.
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
