#include "launcher/slurm/tool.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>

#include "lib/core/error.h"

namespace scaletrain::launcher {
namespace {

std::string read_to_end(int fd) {
  std::string result;
  std::array<char, 4096> bytes{};
  while (true) {
    const ssize_t count = read(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return result;
    result.append(bytes.data(), static_cast<std::size_t>(count));
  }
}

}  // namespace

ToolEnd run_tool(std::vector<std::string> words, std::vector<std::pair<int, int>> descriptors) {
  const std::optional<std::string> path = core::find_program(words.at(0));
  if (!path) {
    throw core::UsageError(words[0], "is not on PATH", "run this where Slurm's programs are");
  }
  words[0] = *path;
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw core::InternalError("pipe", core::errno_text(errno), "check ulimit -n");
  }
  const core::Descriptor source(ends[0]);
  core::Descriptor sink(ends[1]);
  descriptors.emplace_back(sink.get(), STDOUT_FILENO);
  const core::Process process = core::Process::spawn(
      {.arguments = std::move(words), .variables = {}, .descriptors = std::move(descriptors)});
  sink.reset();
  ToolEnd end{.status = {}, .output = read_to_end(source.get())};
  pollfd ended{.fd = process.pidfd(), .events = POLLIN, .revents = 0};
  while (!process.ended()) poll(&ended, 1, -1);
  end.status = *process.ended();
  return end;
}

}  // namespace scaletrain::launcher
