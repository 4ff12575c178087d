// Interfaces through which run_group() reports to a job and to the job's other nodes.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "launcher/workers/hang.h"
#include "launcher/workers/worker_plan.h"

namespace scaletrain::launcher {

// Receives the events of a worker group and makes the decisions that depend on the kind of job.
// Each member has a default that does nothing. All are called by the thread of run_group().
class GroupObserver {
 public:
  virtual ~GroupObserver() = default;

  // Returns the signal that workers receive if the launcher received `signal`.
  virtual int forwarded(int signal) { return signal; }

  // A worker runs.
  virtual void started(const WorkerPlan&, pid_t) {}

  // Called every GroupOptions::heartbeat_every. Returns a reason to stop the workers; "": none.
  virtual std::string heartbeat() { return ""; }

  // Called every GroupOptions::watch_every while no worker is being stopped. A hang ends the
  // workers with SIGKILL, because a stopped or spinning process handles no other signal.
  virtual std::optional<Hang> watch(const std::vector<RunningWorker>&) { return std::nullopt; }

  // A rank of the job has failed; called before the launcher stops the others.
  virtual void peer_lost() {}

  // Returns true if the others go on without this worker. A hanging worker is passed as if it had
  // been killed, and is killed if the result is true.
  virtual bool tolerates_loss(const WorkerEnd&) { return false; }

  // Returns the ranks to evict with a worker whose loss is tolerated: they are killed, and the
  // others go on without them too.
  virtual std::vector<int> evicted_with(const WorkerEnd&) { return {}; }

  // The others go on without this worker. `hang` is set if it was killed because it hung. Not
  // called for the workers that are evicted with it.
  virtual void loss_tolerated(const WorkerEnd&, const std::optional<Hang>& hang) { (void)hang; }
};

// News from the launchers of the job's other nodes.
struct NodeNews {
  bool stop = false;           // the workers must be stopped
  bool peer_lost = false;      // a rank or a node is lost
  std::vector<int> evicted{};  // local ranks to evict with replicas that other nodes have lost
};

// Connection to the launchers of the job's other nodes.
class NodeLink {
 public:
  virtual ~NodeLink() = default;

  // A descriptor that is readable when there is news.
  virtual int changes_fd() const = 0;
  virtual NodeNews read_news() = 0;
};

}  // namespace scaletrain::launcher
