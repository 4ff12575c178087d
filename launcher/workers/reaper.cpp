#include "launcher/workers/reaper.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "launcher/platform/process_view.h"
#include "lib/core/clock.h"
#include "lib/core/text/text.h"

namespace scaletrain::launcher {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kSessionPatience{10'000}, kSessionLook{1};

// Messages to the reaper: the pid of a worker that starts, the negative pid of a worker that is
// forgotten, or this.
constexpr pid_t kOrderlyEnd = 0;

// Kills the sessions of the workers; true if a process was left. A worker leads a session, which
// its child processes leave by setsid(2) only.
bool kill_sessions(const std::set<pid_t>& workers) {
  for (const pid_t worker : workers) ::kill(-worker, SIGKILL);
  bool found = false;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const auto process = core::parse_number<pid_t>(entry.path().filename().native());
    if (!process || !workers.contains(::getsid(*process))) continue;
    const char state = process_state(*process);
    if (state == 'Z' || state == ' ') continue;
    ::kill(*process, SIGKILL);
    found = true;
  }
  return found;
}

// The reaper's life.
[[noreturn]] void keep(int pipe, const JobCgroup& cgroup) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  setsid();                          // a terminal's or a shell's signals are for the launcher
  prctl(PR_SET_NAME, "job-reaper");  // nor does `pkill scaletrain` mean it
  dup2(pipe, STDIN_FILENO);
  closefrom(STDIN_FILENO + 1);  // others wait for the end of these streams and pipes
  std::set<pid_t> workers;
  for (pid_t number = 0; read(STDIN_FILENO, &number, sizeof number) == sizeof number;) {
    if (number == kOrderlyEnd) _exit(0);
    if (number > 0) workers.insert(number);
    if (number < 0) workers.erase(-number);
  }
  cgroup.end();
  const core::SteadyTime limit = core::now() + kSessionPatience;
  while (!workers.empty() && kill_sessions(workers) && core::now() < limit) {
    std::this_thread::sleep_for(kSessionLook);
  }
  _exit(0);
}

}  // namespace

Reaper::Reaper(const std::filesystem::path& parent) : cgroup_(parent) {
  core::Pipe pipe = core::make_pipe();
  pid_ = core::fork_process("reaper");
  if (pid_ == 0) keep(pipe.read.get(), cgroup_);
  pipe_ = std::move(pipe.write);
  cgroup_.make();  // now that it would be removed
}

Reaper::~Reaper() {
  cgroup_.release();
  send(kOrderlyEnd);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Reaper::take_in(core::SpawnRequest& worker) const {
  worker.pid_pipe = pipe_.get();
  worker.cgroup = cgroup_.fd();
}

void Reaper::forget(pid_t worker) const { send(-worker); }

void Reaper::send(pid_t message) const {
  [[maybe_unused]] const ssize_t written = write(pipe_.get(), &message, sizeof message);
}

}  // namespace scaletrain::launcher
