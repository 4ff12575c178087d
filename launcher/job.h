// A job is what is started again after a failure: a recipe or any other program.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "launcher/failure.h"
#include "launcher/restarts.h"
#include "launcher/store_socket.h"
#include "launcher/worker_group.h"

namespace scaletrain::launcher {

// One start of all workers.
struct Attempt {
  Placement placement;  // where they meet in it
  int restart = 0;
  int max_restarts = 0;
  bool first = true;   // nothing of this job ran before
  std::string plan{};  // what make_plan returned on the node that hosts the store
};

class Job {
 public:
  virtual ~Job() = default;

  // On the node that hosts the store, before plan_attempt: what all nodes must agree on.
  virtual std::string make_plan(const Attempt&) { return ""; }
  // The workers of one attempt; `store` is fresh, and listens on the node that hosts it.
  virtual std::vector<WorkerPlan> plan_attempt(const Attempt& attempt,
                                               const StoreSocket& store) = 0;
  // What all launchers of the job call it.
  virtual std::string name() const = 0;
  // Whether it can run on so many nodes.
  virtual bool fits(int /*nodes*/) const { return true; }
  // Where the launchers of several nodes keep their journals; "": nowhere.
  virtual std::filesystem::path journal_folder() const { return {}; }
  // How the group of `plan_attempt` is run, less its grace period.
  virtual GroupOptions group_options(const StoreSocket& store) = 0;

  // Signals that stop the job beside the usual ones (launcher/stop_signals.h).
  virtual std::vector<int> more_signals() const { return {}; }

  // The workers of plan_attempt have ended; for those who keep a record.
  virtual void attempt_ended(const GroupEnd&, const std::vector<WorkerPlan>&) {}

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
  // Records the failure that ends the job, on every node; the result, "" or lines that begin with a
  // newline, ends the report.
  virtual std::string give_up(const Failure& failure) = 0;
};

// The failure that `end` shows: where the workers were stopped (by a signal, another node or the
// launcher itself) only that of one that failed in its own way.
std::optional<Failure> failure_of(const Job& job, const GroupEnd& end,
                                  const std::vector<WorkerPlan>& plans);

// Whether all of `workers` workers succeeded and nobody stopped them.
bool all_succeeded(const GroupEnd& end, std::size_t workers);

// Waits, 0 for ever, until `fd` (-1: none) is readable; the signal that was heard meanwhile, if
// any.
std::optional<int> wait_or_hear(StopSignals& signals, std::chrono::milliseconds time, int fd = -1);

// Runs attempts until one succeeds, is stopped, or fails for good; reports failures on standard
// error. The result is the exit status. Throws core::Error where nothing could be started.
int run_job(Job& job, const Placement& placement, const RestartLimits& limits,
            std::chrono::milliseconds grace);

}  // namespace scaletrain::launcher
