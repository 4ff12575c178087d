// A job is what is started again after a failure: a recipe or any other program.
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
  bool first = true;                   // nothing of this job ran before
  std::string plan{};                  // result of make_plan on the node that hosts the store
  int launchers_here = 1;              // launchers of this job on this machine
  bool one_host = false;               // several nodes, which are launchers of one host
  SilenceExchange exchange_silence{};  // with the other nodes; null: there are none
  // Reports to the other nodes that a replica is lost here; null: there are no other nodes.
  std::function<void(const LostReplica&)> report_lost{};
  std::vector<std::string> replicas{};  // result of memory() on each node, by rank
};

// The workers of one attempt, and how their group is run, less its grace period and keeper.
struct AttemptPlan {
  std::vector<WorkerPlan> workers;
  GroupOptions options;
};

// Properties of a job that are known before its first attempt.
struct JobFacts {
  std::string name;                 // the job's name, the same on all launchers
  recipe::AgreedValues agreed{};    // recipe values on which they must agree; empty for a program
  std::vector<int> more_signals{};  // signals that stop the job beside the usual ones (StopSignals)
  std::filesystem::path journal_folder{};  // folder for journals of multi-node launchers; "": none
  std::function<bool(int nodes)> fits = [](int) { return true; };  // true if it can run on so many
};

// Starts a job again and again.
class AttemptMaker {
 public:
  virtual ~AttemptMaker() = default;

  // On each of several nodes, which others reach at `addresses`, before it joins them; threads may
  // start. Returns where the node keeps pieces of checkpoints for others; "": nowhere.
  virtual std::string memory(const std::vector<std::string>& addresses) {
    (void)addresses;
    return "";
  }
  // On the node that hosts the store, before plan_attempt: what all nodes must agree on.
  virtual std::string make_plan(const Attempt&) { return ""; }
  // `store` is fresh, and listens on the node that hosts it; it and this outlive the attempt.
  virtual AttemptPlan plan_attempt(const Attempt& attempt, const StoreSocket& store) = 0;
  // Several nodes have lost these so far, this one's among them: the ranks here that go with them.
  virtual std::vector<int> hear_lost(const std::vector<LostReplica>&) { return {}; }
  // The replicas that are lost with a node of the attempt; none: the others do not go on. Another
  // thread may call it.
  virtual std::vector<int> lost_with(int node) const {
    (void)node;
    return {};
  }
  // True once the workers of plan_attempt have recorded the end of what they do, whatever becomes
  // of them or of a launcher afterwards. Another thread may call it.
  virtual bool is_done() const { return false; }
  // The workers of plan_attempt have ended; for those who keep a record.
  virtual void attempt_ended(const GroupEnd&, const std::vector<WorkerPlan>&) {}
  // The attempt is judged, on every node: `failure` of any node, nullopt if the nodes changed;
  // `restart` says how the job starts again, "" if it does not.
  virtual void attempt_judged(const std::optional<Failure>& failure, const std::string& restart) {
    (void)failure;
    (void)restart;
  }
};

// Reports and records how a job ends; one of these is called, once.
class JobEnding {
 public:
  virtual ~JobEnding() = default;

  // All workers succeeded; the status to exit with.
  virtual int succeeded() = 0;
  // Stopped by a signal or by the launcher itself, and nothing failed; the status to exit with.
  virtual int stopped(const GroupEnd& end) = 0;
  // Undoes the first start of a job of one node whose workers refuse what they were given before
  // they begin. The result, the refusal, replaces the report; nullopt: it is another failure.
  virtual std::optional<std::string> undo(const Failure&) { return std::nullopt; }
  // Records the failure that ends the job, on every node; the result, "" or lines that begin with a
  // newline, ends the report.
  virtual std::string give_up(const Failure& failure) = 0;
};

// The parts of a job; they belong to whoever made it.
struct Job {
  const JobFacts& facts;
  const OutcomeRules& rules;
  AttemptMaker& attempts;
  JobEnding& ending;
};

// Waits, 0 for ever, until `fd` (-1: none) is readable; the signal that was heard meanwhile, if
// any.
std::optional<int> wait_or_hear(StopSignals& signals, std::chrono::milliseconds time, int fd = -1);

// Runs attempts until one succeeds, is stopped, or fails for good; reports failures on standard
// error. The result is the exit status. Throws core::Error where nothing could be started.
int run_job(const Job& job, const Placement& placement, const RestartLimits& limits,
            std::chrono::milliseconds grace);

}  // namespace scaletrain::launcher
