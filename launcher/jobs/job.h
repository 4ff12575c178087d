// A job: a recipe or any other program, which is restarted after failures.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launcher/agents/records.h"
#include "launcher/jobs/outcome_rules.h"
#include "launcher/place/store_socket.h"
#include "launcher/workers/hang_watch.h"
#include "launcher/workers/restarts.h"
#include "launcher/workers/worker_group.h"
#include "lib/recipe/agreed.h"

namespace scaletrain::launcher {

// One start of all workers.
struct Attempt {
  Placement placement;  // includes the rendezvous endpoint
  int restart = 0;
  int max_restarts = 0;
  bool first = true;                   // first attempt of this job
  std::string plan{};                  // result of make_plan on the node that hosts the store
  int launchers_here = 1;              // launchers of this job on this machine
  bool one_host = false;               // several launchers on one host that act as nodes
  SilenceExchange exchange_silence{};  // with the other nodes; null: single node
  // Reports the loss of a replica to the other nodes; null: single node.
  std::function<void(const LostReplica&)> report_lost{};
  std::vector<std::string> replicas{};  // results of memory() of all nodes, by rank
};

// Workers of one attempt and options of their group, without grace period and reaper.
struct AttemptPlan {
  std::vector<WorkerPlan> workers;
  GroupOptions options;
};

// Properties of a job that are known before its first attempt.
struct JobFacts {
  std::string name;                        // the job's name, the same on all launchers
  recipe::AgreedValues agreed{};           // recipe values that must agree; empty for a program
  std::vector<int> more_signals{};         // further signals that stop the job (StopSignals)
  std::filesystem::path journal_folder{};  // folder for journals of multi-node launchers; "": none
  std::function<bool(int nodes)> fits = [](int) {
    return true;
  };  // true if the job can run on this number of nodes
};

// Makes the attempts of a job.
class AttemptMaker {
 public:
  virtual ~AttemptMaker() = default;

  // Called on each node of a multi-node job before it joins, with its `addresses`; threads may
  // start. Returns the address of the node's peer-checkpoint store; "": none.
  virtual std::string memory(const std::vector<std::string>& addresses) {
    (void)addresses;
    return "";
  }
  // Called before plan_attempt() on the node that hosts the store. Returns data that all nodes must
  // share.
  virtual std::string make_plan(const Attempt&) { return ""; }
  // `store` is new, and listens on the node that hosts it; it and this object outlive the attempt.
  virtual AttemptPlan plan_attempt(const Attempt& attempt, const StoreSocket& store) = 0;
  // Called with the replicas lost so far on all nodes, this one included. Returns the local ranks
  // that must be evicted with them.
  virtual std::vector<int> note_lost(const std::vector<LostReplica>&) { return {}; }
  // Returns the replicas that are lost with a node of the attempt; {}: the other nodes cannot
  // continue. May be called by another thread.
  virtual std::vector<int> lost_with(int node) const {
    (void)node;
    return {};
  }
  // True once the workers have recorded that they are done; their later fate does not matter. May
  // be called by another thread.
  virtual bool is_done() const { return false; }
  // Called when the workers have ended, to record it.
  virtual void attempt_ended(const GroupEnd&, const std::vector<WorkerPlan>&) {}
  // Called on every node after the verdict: `failure` of any node, nullopt if only the set of nodes
  // changed; `restart` describes the restart, "" if there is none.
  virtual void attempt_judged(const std::optional<Failure>& failure, const std::string& restart) {
    (void)failure;
    (void)restart;
  }
};

// Reports and records how a job ends; one of succeeded(), stopped(), undo() and give_up() is
// called, once.
class JobEnding {
 public:
  virtual ~JobEnding() = default;

  // All workers succeeded. Returns the exit status.
  virtual int succeeded() = 0;
  // Stopped by a signal or by the launcher itself, without a failure. Returns the exit status.
  virtual int stopped(const GroupEnd& end) = 0;
  // Returns the cause, which replaces the report, if workers refused the recipe of a job before its
  // first step; nullopt for other failures. Call undo() afterwards, when all nodes know of it.
  virtual std::optional<std::string> refusal(const Failure&) const { return std::nullopt; }
  // Removes what the start of a refused job has written.
  virtual void undo() {}
  // Records the failure that ends the job, on every node. Returns the end of the report: "" or
  // lines that begin with a newline.
  virtual std::string give_up(const Failure& failure) = 0;
};

// The parts of a job, owned by its creator.
struct Job {
  const JobFacts& facts;
  const OutcomeRules& rules;
  AttemptMaker& attempts;
  JobEnding& ending;
};

// Waits for at most `time` (0: no limit) until `fd` (-1: none) is readable. Returns a stop signal
// received meanwhile.
std::optional<int> wait_for_signal(StopSignals& signals, std::chrono::milliseconds time,
                                   int fd = -1);

// Runs attempts until one succeeds, is stopped or fails permanently; reports failures on standard
// error. Returns the exit status. Throws core::Error if nothing could be started.
int run_job(const Job& job, const Placement& placement, const RestartLimits& limits,
            std::chrono::milliseconds grace);

}  // namespace scaletrain::launcher
