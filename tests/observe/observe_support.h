// What the tests of observe share: files, a pipe, and what was written to stderr.
#pragma once

#include <filesystem>
#include <string>

#include "tests/temporary_folder.h"

namespace scaletrain::observe {

std::string read_text(const std::filesystem::path& file);
void write_text(const std::filesystem::path& file, const std::string& text);

class Pipe {
 public:
  Pipe();
  ~Pipe();
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int write_end() const { return fds_[1]; }
  void close_read_end();
  std::string text() const;  // what is in it now

 private:
  int fds_[2] = {-1, -1};
};

// Standard error goes into a pipe while it lives.
class CapturedStderr {
 public:
  CapturedStderr();
  ~CapturedStderr();
  CapturedStderr(const CapturedStderr&) = delete;
  CapturedStderr& operator=(const CapturedStderr&) = delete;

  std::string text() const { return pipe_.text(); }

 private:
  Pipe pipe_;
  int saved_;
};

// Everything that `fd` (opened with O_NONBLOCK) has to read at this moment.
std::string read_available(int fd);

}  // namespace scaletrain::observe
