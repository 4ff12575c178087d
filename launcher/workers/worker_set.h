// The worker processes of one attempt: starts, counts and signals them, and ends their remaining
// child processes.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <vector>

#include "launcher/workers/reaper.h"
#include "launcher/workers/worker_plan.h"
#include "lib/core/clock.h"
#include "lib/core/descriptor.h"

namespace scaletrain::launcher {

class WorkerSet {
 public:
  // Makes this process adopt the orphans of its children. `reaper` may be null. Throws core::Error
  // if the system refuses a descriptor.
  explicit WorkerSet(const Reaper* reaper);

  // Starts a worker with `request`, which is plan.process with additions; `plan` must outlive this
  // object. Throws core::Error if it cannot be started.
  pid_t start(const WorkerPlan& plan, core::SpawnRequest request);

  std::size_t running() const;
  std::vector<RunningWorker> views() const;  // the running workers

  // Readable when a worker has ended.
  int ends_fd() const { return ends_.get(); }
  // Returns the workers that ended since the last call, in order of their ends, which the kernel
  // keeps: the first is the cause. Their last lines are not included.
  std::vector<WorkerEnd> take_ends();

  // Sends a signal to all running workers and their process groups; they then count as stopped, or
  // as killed if it is SIGKILL.
  void signal(int signal);
  // Sends SIGKILL to one worker and its process group; it counts as killed.
  void kill_one(int rank);

  // Ends processes that remain in the workers' process groups: they hold memory, ports and devices
  // that a restart needs. Waits until `end`.
  void end_groups(core::SteadyTime end);
  // Reaps orphans that left a worker's group and then ended. `others`: children of this process
  // that other code waits for.
  void reap_orphans(std::vector<pid_t> others) const;

 private:
  struct Worker {
    const WorkerPlan* plan;
    core::Process process;
    bool ended = false;
    bool was_stopped = false;
    bool was_killed = false;
  };

  const Reaper* reaper_;
  std::vector<Worker> workers_;
  core::Descriptor ends_;  // epoll: the pidfds of workers that run
};

}  // namespace scaletrain::launcher
