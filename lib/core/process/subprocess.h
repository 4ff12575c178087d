// A child process in its own session. It dies with this process and is watched through a pidfd.
//
// The child gets SIGKILL when the thread that spawned it ends (PR_SET_PDEATHSIG), so spawn it from
// a thread that lives as long as the child should.
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

// End of a process: exit(code), or a signal, in which case the code is 0.
struct ExitStatus {
  int code = 0;
  int signal = 0;

  bool ok() const { return code == 0 && signal == 0; }
  int shell_code() const { return signal != 0 ? 128 + signal : code; }
};

// Returns "SIGKILL" for 9, "signal 99" for a signal without a name.
std::string signal_name(int signal);

// Returns "exit code 17" or "killed by SIGSEGV".
std::string to_text(const ExitStatus& status);

struct SpawnRequest {
  std::vector<std::string> arguments;  // [0] is the program's path, which is not searched for
  std::map<std::string, std::string> variables;  // added to this process's environment
  // {our number, the child's number}; the latter is 0, 1, 2 or equal to ours.
  std::vector<std::pair<int, int>> descriptors{};
  std::vector<int> cpus{};             // CPUs that the child may run on; empty: as this process
  std::vector<int> ignored_signals{};  // ignored by the child from its first instruction
  int pid_pipe = -1;  // pipe to which the child writes its pid_t before the program runs
  int cgroup = -1;    // folder of a cgroup (v2) in which the child starts, if the kernel allows it
};

// Calls fork(2), with the child in `cgroup` if it is set and the kernel allows it. Throws
// InternalError for a child called `name` if the system refuses a process.
pid_t fork_process(const std::string& name, int cgroup = -1);

class Process {
 public:
  // Starts a child with all signals unblocked. Close-on-exec descriptors that are not in the
  // request do not reach it. Throws core::UsageError if the program cannot be executed and
  // core::Error of kMemory if the system refuses a process; both name the program and errno.
  static Process spawn(const SpawnRequest& request);

  Process(Process&&) noexcept = default;
  Process& operator=(Process&&) = delete;
  // Calls end_group() with a limit of 10 s.
  ~Process();

  pid_t pid() const { return pid_; }
  int pidfd() const { return pidfd_.get(); }  // readable when the child has ended

  // Signals the child's process group: the child and those of its children that have not left the
  // group.
  void signal_group(int signal) const;

  // Returns how the child ended; nullopt while it runs. Only end_group() reaps the child, so that
  // its process group keeps its number until then.
  std::optional<ExitStatus> ended() const;

  // Kills the rest of the child's process group (SIGKILL) and waits until the child has gone. If
  // this process adopts orphans (PR_SET_CHILD_SUBREAPER), it waits for the rest of the group too.
  // Returns false if a process was still there at `end`, for example one that hangs in the kernel.
  // After true, only pid() may be called.
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
