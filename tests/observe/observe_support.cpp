#include "tests/observe/observe_support.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <iterator>

#include "tests/temporary_folder.h"

namespace scaletrain::observe {

std::string read_text(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  REQUIRE(stream.good());
  return {std::istreambuf_iterator<char>(stream), {}};
}

void write_text(const std::filesystem::path& file, const std::string& text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream stream(file, std::ios::binary);
  stream << text;
  REQUIRE(stream.flush().good());
}

std::string read_available(int fd) {
  std::string text;
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t count = read(fd, buffer.data(), buffer.size());
    if (count <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

Pipe::Pipe() {
  REQUIRE(pipe2(fds_, O_CLOEXEC) == 0);
  REQUIRE(fcntl(fds_[0], F_SETFL, O_NONBLOCK) == 0);
}

Pipe::~Pipe() {
  close_read_end();
  close(fds_[1]);
}

void Pipe::close_read_end() {
  if (fds_[0] >= 0) close(fds_[0]);
  fds_[0] = -1;
}

std::string Pipe::text() const { return read_available(fds_[0]); }

CapturedStderr::CapturedStderr() : saved_(dup(STDERR_FILENO)) {
  dup2(pipe_.write_end(), STDERR_FILENO);
}

CapturedStderr::~CapturedStderr() {
  dup2(saved_, STDERR_FILENO);
  close(saved_);
}

}  // namespace scaletrain::observe
