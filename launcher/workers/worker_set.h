// The processes of one attempt's workers: started, counted, signalled, and what they leave ended.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <vector>

#include "launcher/workers/keeper.h"
#include "launcher/workers/worker_plan.h"
#include "lib/core/clock.h"
#include "lib/core/descriptor.h"

namespace scaletrain::launcher {

class WorkerSet {
 public:
  // Makes this process adopt the orphans of its children. `keeper` may be null. Throws
  // core::Error where the system refuses a descriptor.
  explicit WorkerSet(const Keeper* keeper);

  // Starts a worker by `request`, which is plan.process and what was added to it; `plan` must
  // outlive this. Throws core::Error where it cannot be started.
  pid_t start(const WorkerPlan& plan, core::SpawnRequest request);

  std::size_t running() const;
  std::vector<RunningWorker> views() const;  // the running workers

  // Readable when a worker has ended.
  int ends_fd() const { return ends_.get(); }
  // Returns the workers that ended since the last call, in the order of their ends, which the
  // kernel keeps: the first of several is the cause. Their last lines are not included.
  std::vector<WorkerEnd> take_ends();

  // To all that run, with their process groups; from then on they count as stopped, and as killed
  // where it is SIGKILL.
  void signal(int signal);
  // SIGKILL to this one, with its process group; it counts as killed.
  void kill_one(int rank);

  // Ends what workers have left behind in their process groups: it holds memory, ports and devices
  // that a restart needs. Waits for it until `end`.
  void end_groups(core::SteadyTime end);
  // Reaps the processes that have left a worker's group and then ended. `others`: children of this
  // process that are waited for elsewhere.
  void reap_strangers(std::vector<pid_t> others) const;

 private:
  struct Worker {
    const WorkerPlan* plan;
    core::Process process;
    bool ended = false;
    bool was_stopped = false;
    bool was_killed = false;
  };

  const Keeper* keeper_;
  std::vector<Worker> workers_;
  core::Descriptor ends_;  // epoll: the pidfds of workers that run
};

}  // namespace scaletrain::launcher
