#include "lib/core/process/subprocess.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <thread>

#include "lib/core/error.h"

namespace scaletrain::core {
namespace {

constexpr std::chrono::milliseconds kReapPatience{10'000}, kReapLook{1};

constexpr const char* kProcessRemedy = "raise the limits of processes (ulimit -u) or of memory";

// True if the machine had run out of a resource; false if the request was wrong.
bool is_exhaustion(int error) {
  return error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE;
}

// Returns the environment as NAME=VALUE, with `variables` added or replaced.
std::vector<std::string> merged_environment(const std::map<std::string, std::string>& variables) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (!variables.contains(std::string(text.substr(0, text.find('='))))) result.emplace_back(text);
  }
  for (const auto& [name, value] : variables) {
    std::string entry = name;
    entry += '=';
    entry += value;
    result.push_back(std::move(entry));
  }
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// Passes one descriptor to the child; dup2 to the same number would keep the close-on-exec flag.
bool hand_over(int ours, int childs) {
  if (ours == childs) return fcntl(ours, F_SETFD, 0) == 0;
  return dup2(ours, childs) >= 0;
}

// Returns the CPU mask for the kernel; empty if there are no CPUs.
std::vector<unsigned long> cpu_mask(const std::vector<int>& cpus) {
  constexpr std::size_t kBits = 8 * sizeof(unsigned long);
  std::vector<unsigned long> mask;
  for (const int cpu : cpus) {
    const auto number = static_cast<std::size_t>(cpu);
    mask.resize(std::max(mask.size(), number / kBits + 1));
    mask[number / kBits] |= 1UL << (number % kBits);
  }
  return mask;
}

// Runs in the child between fork and exec, with system calls only. Returns if exec fails.
void become(const SpawnRequest& request, char* const* arguments, char* const* environment,
            const std::vector<unsigned long>& cpus, pid_t parent) {
  if (setsid() < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return;
  if (getppid() != parent) _exit(1);  // the parent died before the death signal was set
  if (request.pid_pipe >= 0) {
    const pid_t number = getpid();
    [[maybe_unused]] const ssize_t written = write(request.pid_pipe, &number, sizeof number);
  }
  if (!cpus.empty() &&
      syscall(SYS_sched_setaffinity, 0, cpus.size() * sizeof(unsigned long), cpus.data()) != 0) {
    return;
  }
  for (const auto& [ours, childs] : request.descriptors) {
    if (!hand_over(ours, childs)) return;
  }
  std::signal(SIGPIPE, SIG_DFL);
  std::signal(SIGXFSZ, SIG_DFL);
  for (const int signal : request.ignored_signals) std::signal(signal, SIG_IGN);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execve(arguments[0], arguments, environment);
}

}  // namespace

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

std::string to_text(const ExitStatus& status) {
  if (status.signal != 0) return fmt::format("killed by {}", signal_name(status.signal));
  return fmt::format("exit code {}", status.code);
}

pid_t fork_process(const std::string& name, int cgroup) {
  pid_t pid = -1;
  if (cgroup >= 0) {
    clone_args arguments{};
    arguments.flags = CLONE_INTO_CGROUP;
    arguments.exit_signal = SIGCHLD;
    arguments.cgroup = static_cast<std::uint64_t>(cgroup);
    pid = static_cast<pid_t>(syscall(SYS_clone3, &arguments, sizeof arguments));
  }
  if (pid < 0) pid = fork();
  if (pid < 0) {
    throw Error(ExitCode::kMemory, name, "cannot start a process: " + errno_text(errno),
                kProcessRemedy);
  }
  return pid;
}

Process Process::spawn(const SpawnRequest& request) {
  std::vector<std::string> argument_texts = request.arguments;
  std::vector<std::string> variable_texts = merged_environment(request.variables);
  const std::vector<char*> arguments = pointers(argument_texts);
  const std::vector<char*> environment = pointers(variable_texts);
  const std::vector<unsigned long> cpus = cpu_mask(request.cpus);

  // The write end closes on a successful exec; otherwise the child writes its errno to it.
  Pipe pipe = make_pipe();
  const pid_t parent = getpid();
  const pid_t pid = fork_process(request.arguments[0], request.cgroup);
  if (pid == 0) {
    become(request, arguments.data(), environment.data(), cpus, parent);
    const int error = errno;
    [[maybe_unused]] const ssize_t written = write(pipe.write.get(), &error, sizeof error);
    _exit(127);
  }
  // glibc 2.36 declares pidfd_open without extern "C".
  Descriptor pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd) {
    const int reason = errno;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    throw Error(reason == ENOSYS ? ExitCode::kFailure : ExitCode::kMemory, request.arguments[0],
                "cannot watch a process: " + errno_text(reason),
                "a kernel from 5.4 on and a free file descriptor are needed");
  }
  Process child(pid, std::move(pidfd));
  pipe.write.reset();
  int error = 0;
  ssize_t count = 0;
  do {
    count = read(pipe.read.get(), &error, sizeof error);
  } while (count < 0 && errno == EINTR);
  if (count == sizeof error && is_exhaustion(error)) {
    throw Error(ExitCode::kMemory, request.arguments[0], "cannot be executed: " + errno_text(error),
                kProcessRemedy);
  }
  if (count == sizeof error) {
    throw UsageError(request.arguments[0], "cannot be executed: " + errno_text(error),
                     "name an executable file");
  }
  return child;
}

Process::~Process() {
  if (pidfd_) end_group(now() + kReapPatience);  // no pidfd: moved from, or already ended
}

bool Process::end_group(SteadyTime end) {
  signal_group(SIGKILL);
  // Orphans become children of this process before their parent is reaped. The group keeps its
  // number until its last process is reaped.
  while (true) {
    siginfo_t info{};
    const int result = waitid(P_PGID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG);
    if (result != 0 && errno != EINTR) break;  // no child of this process is left in the group
    if (result != 0 || info.si_pid != 0) continue;
    if (now() >= end) return false;
    std::this_thread::sleep_for(kReapLook);
  }
  pidfd_.reset();
  return true;
}

void Process::signal_group(int signal) const { kill(-pid_, signal); }

std::optional<ExitStatus> Process::ended() const {
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      info.si_pid == 0) {
    return std::nullopt;
  }
  if (info.si_code == CLD_EXITED) return ExitStatus{.code = info.si_status};
  return ExitStatus{.signal = info.si_status};
}

void reap_orphans(const std::vector<pid_t>& ours) {
  siginfo_t info{};
  while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0 &&
         std::find(ours.begin(), ours.end(), info.si_pid) == ours.end()) {
    waitid(P_PID, static_cast<id_t>(info.si_pid), &info, WEXITED | WNOHANG);
    info = {};
  }
}

std::optional<std::string> find_program(const std::string& name) {
  const auto executable = [](const std::string& path) {
    struct stat status {};
    return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
           access(path.c_str(), X_OK) == 0;
  };
  if (name.find('/') != std::string::npos) {
    return executable(name) ? std::optional(name) : std::nullopt;
  }
  const char* path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
  while (true) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    const std::string folder(end == 0 ? "." : rest.substr(0, end));
    std::string candidate = std::filesystem::path(folder) / name;
    if (executable(candidate)) return candidate;
    if (end == rest.size()) return std::nullopt;
    rest.remove_prefix(end + 1);
  }
}

}  // namespace scaletrain::core
