// A job is what is started again after a failure: a recipe or any other program.
#pragma once

#include <string>
#include <vector>

#include "launcher/failure.h"
#include "launcher/store_socket.h"
#include "launcher/worker_group.h"

namespace scaletrain::launcher {

class Job {
 public:
  virtual ~Job() = default;

  // The workers of one attempt; `store` is fresh, and listens on the node that hosts it.
  virtual std::vector<WorkerPlan> plan_attempt(int restart, int max_restarts,
                                               const StoreSocket& store) = 0;
  // How the group of `plan_attempt` is run, less its grace period.
  virtual GroupOptions group_options(const StoreSocket& store) = 0;

  // Signals that stop the job beside the usual ones (launcher/stop_signals.h).
  virtual std::vector<int> more_signals() const { return {}; }

  // All workers succeeded; the status to exit with.
  virtual int succeeded() = 0;
  // A worker failed: `worth_restart` says whether trying again may help, `exit_status` is what to
  // exit with where it is not tried again.
  virtual bool worth_restart(const Failure& failure) const = 0;
  virtual int exit_status(const Failure& failure) const = 0;
  // Stopped by a signal or by the launcher itself, and nothing failed; the status to exit with.
  virtual int stopped_status(const GroupEnd& end) const = 0;
  // Whether a worker that did not succeed failed in its own way although a stop was asked for.
  virtual bool failed_while_stopping(const WorkerEnd& end) const = 0;
  // Records the failure that ends the job; the result, "" or lines that begin with a newline, ends
  // the report.
  virtual std::string give_up(const Failure& failure) = 0;
};

// Runs attempts until one succeeds, is stopped, or fails for good; reports failures on standard
// error. The result is the exit status. Throws core::Error where nothing could be started.
int run_job(Job& job, const Placement& placement, int max_restarts,
            std::chrono::milliseconds grace);

}  // namespace scaletrain::launcher
