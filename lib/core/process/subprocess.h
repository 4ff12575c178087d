// One child process: in a session of its own, dead when this process dies, watched through a pidfd.
//
// The child gets SIGKILL when the thread that spawned it ends, whatever ends it (PR_SET_PDEATHSIG),
// so spawn from a thread that lives as long as the child should.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/core/clock.h"
#include "lib/core/descriptor.h"

namespace scaletrain::core {

// How a process ended: by exit(code), or by a signal (then code is 0).
struct ExitStatus {
  int code = 0;
  int signal = 0;

  bool ok() const { return code == 0 && signal == 0; }
  int shell_code() const { return signal != 0 ? 128 + signal : code; }
};

// "SIGKILL" for 9; "signal 99" for one without a name.
std::string signal_name(int signal);

// "exit code 17", "killed by SIGSEGV".
std::string to_text(const ExitStatus& status);

struct SpawnRequest {
  std::vector<std::string> arguments;              // [0] is the program's path, used as it is
  std::map<std::string, std::string> variables;    // on top of this process's environment
  std::vector<std::pair<int, int>> descriptors{};  // {ours, the child's number}; the child's number
                                                   // is 0, 1, 2 or equal to ours
  std::vector<int> cpus{};             // the child may run on these only; empty: as this process
  std::vector<int> ignored_signals{};  // ignored by the child, from its first instruction on
  int pid_pipe = -1;  // a pipe: the child writes its number, a pid_t, before the program runs
  int cgroup = -1;  // the folder of the cgroup (v2) that the child starts in, if the kernel lets it
};

// fork(2), into `cgroup` where it is one and the kernel lets us. Throws InternalError, for a child
// called `name`, where the system refuses a process.
pid_t fork_process(const std::string& name, int cgroup = -1);

class Process {
 public:
  // Starts a child with signals unblocked. Descriptors that close on exec and are not in the
  // request do not reach it. Throws core::UsageError where the program cannot be executed and
  // core::Error of kMemory where the system refuses a process, both naming the program and errno.
  static Process spawn(const SpawnRequest& request);

  Process(Process&&) noexcept = default;
  Process& operator=(Process&&) = delete;
  // end_group, for up to 10 s.
  ~Process();

  pid_t pid() const { return pid_; }
  int pidfd() const { return pidfd_.get(); }  // readable when the child has ended

  // To the child's process group: the child and those of its children that did not leave it.
  void signal_group(int signal) const;

  // How it ended, nullopt while it runs. The child is reaped by end_group only, so that its process
  // group keeps its number until then.
  std::optional<ExitStatus> ended() const;

  // SIGKILL to what is left of the child's process group; waits until the child has gone and, where
  // this process adopts orphans (PR_SET_CHILD_SUBREAPER), the rest too. False: something was still
  // there at `end`, as a process is that hangs in the kernel. After true only pid() may be called.
  bool end_group(SteadyTime end);

 private:
  Process(pid_t pid, Descriptor pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}

  pid_t pid_;
  Descriptor pidfd_;
};

// Reaps adopted orphans: ended children that this process did not start. Stops at the first ended
// process of `ours`, which its owner reaps.
void reap_orphans(const std::vector<pid_t>& ours);

// Returns the executable file for `name`: `name` itself if it has a slash, else the first match on
// PATH; nullopt if there is none.
std::optional<std::string> find_program(const std::string& name);

}  // namespace scaletrain::core
