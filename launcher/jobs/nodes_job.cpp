#include "launcher/jobs/nodes_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>

#include "launcher/agents/beacon.h"
#include "launcher/agents/journal.h"
#include "launcher/agents/meeting.h"
#include "launcher/agents/session.h"
#include "launcher/agents/waiting.h"
#include "launcher/jobs/node_report.h"
#include "launcher/jobs/round_attempt.h"
#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/core/line_start.h"
#include "lib/core/log.h"

namespace scaletrain::launcher {
namespace {

using core::SteadyTime;
using std::chrono::milliseconds;

// Between two tries to find the store.
constexpr milliseconds kRetry{200};
// How often a leader without a quorum looks for one whose turn came before its own.
constexpr milliseconds kLookAround{2000};

class NodesJob {
 public:
  NodesJob(const Job& job, const Placement& placement, const NodesOptions& options)
      : job_(job),
        placement_(placement),
        options_(options),
        signals_(job.facts.more_signals),
        terms_{.name = job.facts.name,
               .token = options.token,
               .nnodes = options.nnodes,
               .min_nodes = placement.min_nodes,
               .max_nodes = placement.nnodes,
               .nproc = placement.nproc,
               .fixed_ranks = placement.fixed_ranks,
               .recipe = job.facts.agreed},
        agent_(agent_name(placement)),
        meeting_(placement.endpoints, placement.local_addr, agent_, terms_, options.timing,
                 !placement.fixed_ranks || placement.node_rank == 0) {
    for (int nodes = placement.min_nodes; nodes <= placement.nnodes; ++nodes) {
      if (job.facts.fits(nodes)) fits_.insert(nodes);
    }
    if (const std::filesystem::path& folder = job.facts.journal_folder; !folder.empty()) {
      journal_ = Journal(folder / (agent_ + ".jsonl"), agent_);
    }
  }

  int run() {
    while (true) {
      if (!session_) {
        if (const std::optional<int> status = meet()) return *status;
      }
      if (const std::optional<int> status = live_a_round()) {
        farewell();
        return *status;
      }
    }
  }

 private:
  // Finds the store, or hosts it, and joins. A status where a signal was heard meanwhile.
  std::optional<int> meet() {
    const SteadyTime start = core::now();
    while (true) {
      if (meeting_.is_turn(core::now())) signpost_.reset();  // its port is needed
      if (std::optional<Met> met = meeting_.try_once(core::now(), signals_.fd())) {
        if (join(std::move(*met))) return std::nullopt;
      }
      if (core::now() - start >= options_.timing.join_timeout) {
        throw core::StoppedError(
            "rendezvous",
            fmt::format("the other nodes were not found within {:g} s: {}",
                        std::chrono::duration<double>(options_.timing.join_timeout).count(),
                        meeting_.why()),
            "check that the first node is up and can be reached at the address that was given");
      }
      if (const std::optional<int> signal = wait_or_hear(signals_, kRetry)) return stopped(*signal);
    }
  }

  // False: the store was lost again meanwhile.
  bool join(Met met) {
    const Join join{.candidate = {.agent = agent_,
                                  .host = host_name(),
                                  .addresses = meeting_.addresses(),
                                  .port = met.server ? met.endpoint.port : meeting_.port()},
                    .proof = "",
                    .nnodes = options_.nnodes,
                    .node = placement_.fixed_ranks ? placement_.node_rank : -1,
                    .nproc = placement_.nproc,
                    .network = own_network(),
                    .replicas = job_.attempts.memory(meeting_.addresses()),
                    .last = last_};
    std::optional<Leader::Options> leader;
    if (met.server) leader = leader_options(met.generation);
    endpoint_ = met.endpoint;
    server_.reset();
    if (met.server) server_.emplace(std::move(*met.server));
    try {
      session_ = std::make_unique<Session>(std::move(met.store), join, terms_, options_.timing,
                                           std::move(leader), journal_);
      return true;
    } catch (const StoreLost&) {
      return false;
    }
  }

  Leader::Options leader_options(int generation) {
    Leader::Options options;
    options.terms = terms_;
    options.agent = agent_;
    options.host = host_name();
    options.timing = options_.timing;
    options.restarts = options_.restarts;
    options.restarts_used = restarts_used_;
    options.generation = generation;
    options.last = last_;
    options.fits = [this](int nodes) { return fits_.contains(nodes); };
    options.worth_restart = [this](const Failure& failure) {
      return job_.rules.worth_restart(failure);
    };
    options.exit_status = [this](const Failure& failure) {
      return job_.rules.exit_status(failure);
    };
    options.lost_with = [this](int node) { return job_.attempts.lost_with(node); };
    return options;
  }

  // From waiting for a place to the verdict. A status where it is the last.
  std::optional<int> live_a_round() {
    std::optional<int> prepared;  // the round that this node, leading, has planned
    SteadyTime next_look = core::now() + kLookAround;
    while (true) {
      session_->clear_changes();
      const Session::View view = session_->view();
      if (const auto verdict = session_->take_verdict()) return conclude(*verdict, {});
      if (!view.lost.empty()) return lose_store(view);
      if (view.rank && view.board.round > round_) {
        if (view.board.phase == Phase::kRunning) return run_round(view);
        if (view.board.phase == Phase::kStopping) return sit_out(view);
        if (view.leads && prepared != view.board.round) {
          prepared = view.board.round;
          prepare(view);
        }
      }
      report_waiting(view);
      const bool waits = view.leads && !placement_.fixed_ranks && view.board.nodes == 0;
      if (waits && core::now() >= next_look) {
        next_look = core::now() + kLookAround;
        if (give_way(view.board.generation)) return std::nullopt;
      }
      if (const std::optional<int> signal =
              wait_or_hear(signals_, kLookAround, session_->changes_fd())) {
        session_->leave();
        return stopped(*signal);
      }
    }
  }

  // Once what a round waits for, or why one goes on without this node.
  void report_waiting(const Session::View& view) {
    std::string text =
        waiting_text(view.board, view.rank.has_value(), fits_, terms_, options_.timing);
    if (text.empty() || text == waiting_) return;
    core::log("{}", text);
    waiting_ = std::move(text);
  }

  Attempt attempt_of(const Session::View& view) const {
    return round_attempt(view, placement_, endpoint_.host, options_.restarts.most);
  }

  // The leader's part before a round: the workers' store, and what all nodes must agree on.
  void prepare(const Session::View& view) {
    const Attempt attempt = attempt_of(view);
    Placement place = attempt.placement;
    place.master_port = 0;  // a new one for every round: no attempt sees another's keys
    try {
      store_ = listen_for_store(place);
      session_->publish({.host = placement_.local_addr, .port = store_.port},
                        job_.attempts.make_plan(attempt));
      guide_newcomers(view.board.generation);
    } catch (const core::Error& error) {
      report_error(view, error);
    }
  }

  // Where the job has left its endpoints: others are started again there.
  void guide_newcomers(int generation) {
    if (placement_.fixed_ranks || generation == 1 || beacon_.joinable()) return;
    beacon_ = start_beacon(placement_.endpoints, terms_, generation,
                           {.agent = agent_,
                            .host = host_name(),
                            .addresses = meeting_.addresses(),
                            .port = endpoint_.port});
  }

  std::optional<int> run_round(const Session::View& view) {
    if (last_.nodes == 0 && !server_) {
      core::log("joined the job at {}: this is node {} of {}", to_text(endpoint_), *view.rank,
                view.board.nodes);
    }
    if (last_.nodes > 0 && last_.nodes != view.board.nodes) {
      core::log("the job goes on with {} nodes; this is node {}", view.board.nodes, *view.rank);
    }
    enter_round(view);
    Attempt attempt = attempt_of(view);
    attempt.exchange_silence = [this](milliseconds own) { return session_->exchange_silence(own); };
    attempt.report_lost = [this](LostReplica lost) {
      lost.round = round_;
      session_->report_lost(lost);
    };
    if (!view.leads) store_ = {.fd = core::Descriptor(), .port = view.board.store_port};
    GroupEnd end;
    try {
      AttemptPlan plan = job_.attempts.plan_attempt(attempt, store_);
      GroupOptions& group = plan.options;
      group.grace = options_.grace;
      group.keeper = &keeper_;
      for (const auto* const store : {&server_, &signpost_}) {
        if (*store) group.other_children.push_back((*store)->pid());
      }
      group.nodes_fd = session_->changes_fd();
      group.hear_nodes = [this, peer_lost = group.peer_lost] { return hear_nodes(peer_lost); };
      end = run_group(plan.workers, group, signals_);
      job_.attempts.attempt_ended(end, plan.workers);
      report(end, plan.workers, *view.rank);
    } catch (const core::Error& error) {
      report_error(view, error);
    }
    store_ = {};
    return await_verdict(end);
  }

  void enter_round(const Session::View& view) {
    round_ = view.board.round;
    restarts_used_ = view.board.restart;
    last_ = view.last;
  }

  // The round was stopped before this node had started its workers.
  std::optional<int> sit_out(const Session::View& view) {
    enter_round(view);
    store_ = {};
    session_->report({.agent = "", .round = round_, .outcome = Outcome::kStopped, .failure = {}});
    return await_verdict({});
  }

  NodesWord hear_nodes(const std::function<void()>& peer_lost) {
    session_->clear_changes();
    const Session::View view = session_->view();
    if (!view.lost.empty() || view.board.failed) peer_lost();
    const bool is_other = view.board.round != round_;
    NodesWord word{.stop = !view.lost.empty() || is_other || view.board.phase != Phase::kRunning};
    if (!is_other) word.lost_with = job_.attempts.hear_lost(view.board.lost);
    return word;
  }

  void report(const GroupEnd& end, const std::vector<WorkerPlan>& plans, int node) {
    if (!end.trouble.empty()) core::log("{}", end.trouble);
    const Report report = node_report(job_, end, plans, round_, node);
    if (!report.reason.empty()) stop_status_ = report.status;
    failure_ = report.failure;
    session_->report(report);
  }

  // This node cannot take part in the round, and says why to all.
  void report_error(const Session::View& view, const core::Error& error) {
    round_ = view.board.round;
    const Report report = node_report(error, round_, *view.rank);
    failure_ = report.failure;
    session_->report(report);
  }

  std::optional<int> await_verdict(const GroupEnd& end) {
    while (true) {
      session_->clear_changes();
      const Session::View view = session_->view();
      while (const std::optional<Verdict> verdict = session_->take_verdict()) {
        if (verdict->round == round_) return conclude(*verdict, end);
      }
      if (!view.lost.empty()) {
        if (end.stop_signal != 0) return stop_status_;
        return lose_store(view);
      }
      if (const std::optional<int> signal =
              wait_or_hear(signals_, kLookAround, session_->changes_fd())) {
        session_->leave();
        return stopped(*signal);
      }
    }
  }

  // Logs the verdict; a status where it is the last for this node.
  std::optional<int> conclude(const Verdict& verdict, const GroupEnd& end) {
    failure_.reset();
    if (const Board board = session_->view().board; board.round == round_) {
      job_.attempts.hear_lost(board.lost);
    }
    std::string text = verdict.text;
    if (!verdict.again && verdict.failure) text += job_.ending.give_up(*verdict.failure);
    // One that stopped by itself has logged why.
    const bool leaves = end.stop_signal != 0 || !end.trouble.empty();
    if (!text.empty() && (!leaves || verdict.failure)) {
      core::leave_bar_of_terminal();
      core::log("{}", text);
    }
    if (verdict.again) return leaves ? std::optional(stop_status_) : std::nullopt;
    return verdict.code == 0 ? job_.ending.succeeded() : verdict.code;
  }

  std::optional<int> lose_store(const Session::View& view) {
    journal_.write("store lost", {{"why", view.lost}});
    // Another node may never have heard of it.
    if (failure_ && !failure_->followed) core::log("{}", render(*failure_));
    if (placement_.fixed_ranks) {
      throw core::StoppedError("the job", "the node with the store was lost: " + view.lost,
                               "look at the launcher of node 0");
    }
    core::log(
        "the node with the store was lost: {}\n  more than half of {} nodes meet again, or give "
        "up after {:g} s",
        view.lost, std::max(1, view.last.nodes),
        std::chrono::duration<double>(options_.timing.join_timeout).count());
    failure_.reset();
    last_ = view.last;
    // A leader that never had a round knows no more than is known here.
    if (view.board.nodes > 0) meeting_.begin_again(view.board, last_, view.pulse, core::now());
    beacon_ = {};  // ends it
    session_.reset();
    server_.reset();
    return std::nullopt;
  }

  // Of two that lead, each of which waits for the others, one goes on. The other's store stays
  // where it shows newcomers the way.
  bool give_way(int generation) {
    std::optional<Met> met = meeting_.ask_before(generation);
    if (!met) return false;
    journal_.write("give way", {{"to", to_text(met->endpoint)}});
    session_.reset();
    if (met->through_own_store) signpost_.emplace(std::move(*server_));
    server_.reset();
    join(std::move(*met));
    return true;
  }

  int stopped(int signal) { return job_.ending.stopped({.workers = {}, .stop_signal = signal}); }

  // A leader stays until the others have read the verdict.
  void farewell() {
    while (session_) {
      session_->clear_changes();
      const Session::View view = session_->view();
      if (!view.leads || view.finished || !view.lost.empty() || view.board.phase != Phase::kOver) {
        return;
      }
      wait_or_hear(signals_, kLookAround, session_->changes_fd());
    }
  }

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
  std::jthread beacon_;                    // of a leader that took over
  Endpoint endpoint_;
  std::unique_ptr<Session> session_;
  StoreSocket store_;  // of the workers of the round under way
  int round_ = 0;      // that this node was part of last
  int restarts_used_ = 0;
  int stop_status_ = 0;  // to exit with after a signal
  LastRound last_;
  std::string waiting_;             // what was logged of the wait, last
  std::optional<Failure> failure_;  // reported, without a verdict yet
};

}  // namespace

int run_job_on_nodes(const Job& job, const Placement& placement, const NodesOptions& options) {
  return NodesJob(job, placement, options).run();
}

}  // namespace scaletrain::launcher
