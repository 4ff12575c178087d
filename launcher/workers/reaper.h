// A process that outlives the launcher for a moment, to end the child processes of workers: workers
// die with the launcher, but the processes that they have started do not.
//
// It waits on a pipe that closes with the launcher. Without a message of an orderly end, it kills
// all processes in the job's cgroup and in the sessions of workers that were not forgotten.
#pragma once

#include <sys/types.h>

#include <filesystem>

#include "launcher/platform/job_cgroup.h"
#include "lib/core/descriptor.h"
#include "lib/core/process/subprocess.h"

namespace scaletrain::launcher {

class Reaper {
 public:
  // Forks: no other thread may run. `parent`: folder in which the job's cgroup is made. Throws
  // core::InternalError if the system refuses a process.
  explicit Reaper(const std::filesystem::path& parent = own_cgroup());
  // Orderly end: processes outside the workers' process groups are not killed.
  ~Reaper();
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;

  pid_t pid() const { return pid_; }

  // Changes a worker's request so that its process sends its PID to the reaper before its program
  // runs.
  void take_in(core::SpawnRequest& worker) const;
  // Removes a worker whose process group has ended.
  void forget(pid_t worker) const;

 private:
  void send(pid_t message) const;

  JobCgroup cgroup_;
  core::Descriptor pipe_;
  pid_t pid_ = -1;
};

}  // namespace scaletrain::launcher
