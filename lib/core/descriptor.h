// A file descriptor with one owner, and the ways to get one. All of them close on exec.
#pragma once

#include <unistd.h>

#include <string>
#include <string_view>
#include <utility>

namespace scaletrain::core {

// Closes on destruction; -1 is none.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

struct Pipe {
  Descriptor read, write;
};

// Throws Error of kMemory when there are too many open files.
Pipe make_pipe();

// A file in memory that holds `bytes` and is gone with its last descriptor; `label` is for /proc.
// Throws Error of kMemory when there is no memory for it.
Descriptor make_memory_file(const char* label, std::string_view bytes = {});

// Path under which this process, and a child that inherits `fd`, can open the file again.
std::string path_of(int fd);

// The file, made if it is not there, for writing at its end. Throws StorageError with `remedy`, or
// Error of kMemory when there are too many open files.
Descriptor open_to_append(const std::string& path, const char* remedy);

// /dev/null, for a child that is to read nothing. Throws as make_pipe.
Descriptor open_nothing();

}  // namespace scaletrain::core
