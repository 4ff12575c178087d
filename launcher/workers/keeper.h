// A process that outlives the launcher for the moment that it takes to end what workers have left:
// they die with the launcher, but not what they have started.
//
// It sleeps on a pipe that closes with the launcher. If no message of an orderly end came before,
// it kills all that is in the job's cgroup, and the sessions of the workers that were not
// forgotten.
#pragma once

#include <sys/types.h>

#include <filesystem>

#include "launcher/platform/job_cgroup.h"
#include "lib/core/descriptor.h"
#include "lib/core/process/subprocess.h"

namespace scaletrain::launcher {

class Keeper {
 public:
  // Forks: no other thread may run. The job's cgroup is made in `parent`. Throws
  // core::InternalError where the system refuses a process.
  explicit Keeper(const std::filesystem::path& parent = own_cgroup());
  // Nothing is killed that lives on outside of the workers' process groups.
  ~Keeper();
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  pid_t pid() const { return pid_; }

  // For the request of a worker: it writes its number to the keeper before its program runs.
  void take_in(core::SpawnRequest& worker) const;
  // Nothing is left of its process group that can be ended.
  void forget(pid_t worker) const;

 private:
  void send(pid_t message) const;

  JobCgroup cgroup_;
  core::Descriptor pipe_;
  pid_t pid_ = -1;
};

}  // namespace scaletrain::launcher
