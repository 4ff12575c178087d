// One launcher's part of a multi-node job: nodes_job.cpp has the rounds, nodes_job_rendezvous.cpp
// has joining, changing the leader and leaving.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "launcher/agents/journal.h"
#include "launcher/agents/rendezvous.h"
#include "launcher/agents/session.h"
#include "launcher/jobs/job.h"
#include "launcher/jobs/nodes/nodes_options.h"
#include "launcher/platform/stop_signals.h"
#include "launcher/workers/group_observer.h"
#include "launcher/workers/reaper.h"
#include "lib/core/error.h"
#include "lib/core/process/subprocess.h"

namespace scaletrain::launcher {

class NodesJob : public NodeLink {
 public:
  NodesJob(const Job& job, const Placement& placement, const NodesOptions& options);

  // Does the work of run_job_on_nodes().
  int run();

  int changes_fd() const override { return session_->changes_fd(); }
  NodeNews read_news() override;

 private:
  // How often a waiting node searches: a leader without a quorum searches for a leader that
  // precedes it.
  static constexpr std::chrono::milliseconds kLookAround{2000};

  // Finds the store, or hosts it, and joins. Returns an exit status if a stop signal was received
  // meanwhile.
  std::optional<int> meet();
  // Returns false if the store was lost again meanwhile.
  bool join(FoundStore met);
  Leader::Options leader_options(int generation);
  // Redirects restarted nodes to the job if it has moved away from its endpoints.
  void guide_newcomers(int generation);
  std::optional<int> lose_store(const Session::View& view);
  // Follows the successor that a leaving leader has named.
  std::optional<int> follow_successor(const Session::View& view);
  // Leaves the store of `view` and joins another leader's.
  void meet_again(const Session::View& view);
  // Resolves the conflict of two leaders that each wait for nodes: one continues. The other's store
  // stays only to redirect newcomers.
  bool give_way(int generation);
  // Leaves the job because of `signal`, or for another reason if it is 0. A leader stays until the
  // job is over or has another leader, or until the next signal. Returns the job's exit status if
  // it is over, else `status`.
  int depart(int signal, int status);
  // As leader, waits until the others have read the verdict or the next leader.
  void farewell();

  // Runs a round, from waiting for a rank to the verdict. Returns the exit status after the last.
  std::optional<int> take_part();
  // Logs once why a round waits, or why it continues without this node.
  void report_waiting(const Session::View& view);
  Attempt attempt_of(const Session::View& view) const;
  // As leader, prepares a round: the workers' store, and the data that all nodes share.
  void prepare(const Session::View& view);
  std::optional<int> run_round(const Session::View& view);
  void enter_round(const Session::View& view);
  // Handles a round that was stopped before this node had started its workers.
  std::optional<int> sit_out(const Session::View& view);
  void report(const GroupEnd& end, const std::vector<WorkerPlan>& plans, int node);
  // Reports to all nodes why this node cannot take part in the round.
  void report_error(const Session::View& view, const core::Error& error);
  std::optional<int> await_verdict(const GroupEnd& end);
  // Logs the verdict. Returns an exit status if it is final for this node.
  std::optional<int> conclude(const Verdict& verdict, const GroupEnd& end);
  int stopped(int signal);

  Job job_;
  Reaper reaper_;  // created before any thread
  Placement placement_;
  NodesOptions options_;
  StopSignals signals_;
  JobTerms terms_;
  std::set<int> fits_;  // numbers of nodes on which the job can run; the session's thread asks
  std::string agent_;
  Journal journal_;
  Rendezvous rendezvous_;
  std::optional<core::Process> server_;
  std::optional<core::Process> signpost_;  // keeps the store that redirects newcomers
  std::jthread beacon_;                    // run by a successor leader
  Endpoint endpoint_;
  std::unique_ptr<Session> session_;
  StoreSocket store_;  // serves the workers of the current round
  int round_ = 0;      // last round of this node
  int restarts_used_ = 0;
  int stop_status_ = 0;      // to exit with after a signal
  bool is_refused_ = false;  // the recipe, by a worker
  LastRound last_;
  std::string waiting_;             // last logged text about the wait
  std::optional<Failure> failure_;  // reported, without a verdict yet
};

}  // namespace scaletrain::launcher
