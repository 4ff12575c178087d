#include "launcher/platform/git_changes.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <optional>

#include "lib/core/clock.h"
#include "lib/core/descriptor.h"
#include "lib/core/process/subprocess.h"
#include "lib/observe/environment.h"

namespace scaletrain::launcher {
namespace {

// Starts git with its output in `output`, all signals unblocked. Returns its process id, -1 if it
// cannot be started. core::Process is not used: the launcher's loop would reap the child first.
pid_t start_git(const std::string& git, const std::string& folder, int output) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  std::array<std::string, 9> words{
      git,    "--no-optional-locks", "--no-pager",   "-C", folder, "diff",
      "HEAD", "--no-color",          "--no-ext-diff"};
  std::array<char*, words.size() + 1> arguments{};
  std::transform(words.begin(), words.end(), arguments.begin(),
                 [](std::string& word) { return word.data(); });
  pid_t pid = -1;
  if (posix_spawn(&pid, git.c_str(), &files, &attributes, arguments.data(), environ) != 0) pid = -1;
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return pid;
}

// Reads to the end of the output; nullopt where that takes too long or is not wanted any more.
std::optional<std::string> read_all(int from, const std::atomic<bool>& stop) {
  constexpr std::size_t kMostBytes = 1 << 20;
  constexpr std::chrono::seconds kLimit{20};
  constexpr int kPollMs = 50;
  const core::SteadyTime end = core::now() + kLimit;
  std::string text;
  while (!stop && core::now() < end) {
    pollfd ready{.fd = from, .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, kPollMs) <= 0) continue;
    std::array<char, 1 << 14> buffer{};
    const ssize_t count = ::read(from, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(buffer.data(), std::min(static_cast<std::size_t>(count), kMostBytes - text.size()));
  }
  return std::nullopt;
}

}  // namespace

std::string git_changes(const std::filesystem::path& folder, const std::atomic<bool>& stop) {
  if (observe::git_commit(folder).empty()) return "";
  const std::optional<std::string> git = core::find_program("git");
  if (!git) return "";
  core::Pipe output = core::make_pipe();
  const pid_t pid = start_git(*git, folder.string(), output.write.get());
  if (pid < 0) return "";
  output.write.reset();
  const std::optional<std::string> text = read_all(output.read.get(), stop);
  if (!text) ::kill(pid, SIGKILL);
  output.read.reset();
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return text.value_or("");
}

}  // namespace scaletrain::launcher
