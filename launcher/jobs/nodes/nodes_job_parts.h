// One launcher's part of a job on several nodes, as one object: nodes_job.cpp has the rounds,
// nodes_job_meeting.cpp the ways into the job, to another leader and out of it.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "launcher/agents/journal.h"
#include "launcher/agents/meeting.h"
#include "launcher/agents/session.h"
#include "launcher/jobs/job.h"
#include "launcher/jobs/nodes/nodes_options.h"
#include "launcher/platform/stop_signals.h"
#include "launcher/workers/group_observer.h"
#include "launcher/workers/keeper.h"
#include "lib/core/error.h"
#include "lib/core/process/subprocess.h"

namespace scaletrain::launcher {

class NodesJob : public NodeLink {
 public:
  NodesJob(const Job& job, const Placement& placement, const NodesOptions& options);

  // As run_job_on_nodes.
  int run();

  int changes_fd() const override { return session_->changes_fd(); }
  NodeNews read_news() override;

 private:
  // How often a node that waits looks around: a leader without a quorum for one whose turn came
  // before its own.
  static constexpr std::chrono::milliseconds kLookAround{2000};

  // Finds the store, or hosts it, and joins. A status where a signal was heard meanwhile.
  std::optional<int> meet();
  // False: the store was lost again meanwhile.
  bool join(Met met);
  Leader::Options leader_options(int generation);
  // Guides restarted nodes to the job if it has moved away from its endpoints.
  void guide_newcomers(int generation);
  std::optional<int> lose_store(const Session::View& view);
  // The leader leaves, and has named the next one.
  std::optional<int> follow_heir(const Session::View& view);
  // Leaves the store of `view` behind, for another leader's.
  void meet_again(const Session::View& view);
  // Resolves two leaders that each wait for the other nodes: one goes on. The other's store stays
  // if it shows newcomers the way.
  bool give_way(int generation);
  // Leaves the job, with `signal`, or for another reason where that is 0. A leader stays until the
  // job is over or another one leads it, or until the next signal. The result is the exit status:
  // the job's where that is over, else `status`.
  int depart(int signal, int status);
  // A leader stays until the others have read the verdict, or who leads next.
  void farewell();

  // Runs a round, from waiting for a rank to the verdict. Returns the exit status after the last.
  std::optional<int> live_a_round();
  // Logs once what a round waits for, or why one goes on without this node.
  void report_waiting(const Session::View& view);
  Attempt attempt_of(const Session::View& view) const;
  // The leader's part before a round: the workers' store, and what all nodes must agree on.
  void prepare(const Session::View& view);
  std::optional<int> run_round(const Session::View& view);
  void enter_round(const Session::View& view);
  // The round was stopped before this node had started its workers.
  std::optional<int> sit_out(const Session::View& view);
  void report(const GroupEnd& end, const std::vector<WorkerPlan>& plans, int node);
  // This node cannot take part in the round, and says why to all.
  void report_error(const Session::View& view, const core::Error& error);
  std::optional<int> await_verdict(const GroupEnd& end);
  // Logs the verdict; a status where it is the last for this node.
  std::optional<int> conclude(const Verdict& verdict, const GroupEnd& end);
  int stopped(int signal);

  Job job_;
  Keeper keeper_;  // before there are threads
  Placement placement_;
  NodesOptions options_;
  StopSignals signals_;
  JobTerms terms_;
  std::set<int> fits_;  // numbers of nodes on which the job can run; the session's thread asks
  std::string agent_;
  Journal journal_;
  Meeting meeting_;
  std::optional<core::Process> server_;
  std::optional<core::Process> signpost_;  // a store that another's beacon has reached
  std::jthread beacon_;                    // run by a successor leader
  Endpoint endpoint_;
  std::unique_ptr<Session> session_;
  StoreSocket store_;  // serves the workers of the current round
  int round_ = 0;      // the last that this node was part of
  int restarts_used_ = 0;
  int stop_status_ = 0;  // to exit with after a signal
  LastRound last_;
  std::string waiting_;             // last logged text about the wait
  std::optional<Failure> failure_;  // reported, without a verdict yet
};

}  // namespace scaletrain::launcher
