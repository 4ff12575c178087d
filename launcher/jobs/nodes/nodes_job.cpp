#include "launcher/jobs/nodes/nodes_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "launcher/agents/waiting.h"
#include "launcher/jobs/nodes/node_report.h"
#include "launcher/jobs/nodes/nodes_job_parts.h"
#include "launcher/jobs/nodes/round_attempt.h"
#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/core/line_start.h"
#include "lib/core/log.h"
#include "lib/core/text/text.h"

namespace scaletrain::launcher {

using core::SteadyTime;
using std::chrono::milliseconds;

NodesJob::NodesJob(const Job& job, const Placement& placement, const NodesOptions& options)
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
      rendezvous_(placement.endpoints, placement.local_addr, agent_, terms_, options.timing,
                  !placement.fixed_ranks || placement.node_rank == 0) {
  for (int nodes = placement.min_nodes; nodes <= placement.nnodes; ++nodes) {
    if (job.facts.fits(nodes)) fits_.insert(nodes);
  }
  if (const std::filesystem::path& folder = job.facts.journal_folder; !folder.empty()) {
    journal_ = Journal(folder / (agent_ + ".jsonl"), agent_);
  }
}

int NodesJob::run() {
  while (true) {
    if (!session_) {
      if (const std::optional<int> status = meet()) return *status;
    }
    if (const std::optional<int> status = take_part()) {
      farewell();
      if (is_refused_) job_.ending.undo();
      return *status;
    }
  }
}

std::optional<int> NodesJob::take_part() {
  std::optional<int> prepared;  // the round that this node, leading, has planned
  SteadyTime next_look = core::now() + kLookAround;
  while (true) {
    session_->clear_changes();
    const Session::View view = session_->view();
    if (const auto verdict = session_->take_verdict()) return conclude(*verdict, {});
    if (view.state.handed_over && !view.leads) return follow_successor(view);
    if (!view.lost.empty()) return lose_store(view);
    if (view.rank && view.state.round > round_) {
      if (view.state.phase == Phase::kRunning) return run_round(view);
      if (view.state.phase == Phase::kStopping) return sit_out(view);
      if (view.leads && prepared != view.state.round) {
        prepared = view.state.round;
        prepare(view);
      }
    }
    report_waiting(view);
    const bool waits = view.leads && !placement_.fixed_ranks && view.state.nodes == 0;
    if (waits && core::now() >= next_look) {
      next_look = core::now() + kLookAround;
      if (give_way(view.state.generation)) return std::nullopt;
    }
    if (const std::optional<int> signal =
            wait_for_signal(signals_, kLookAround, session_->changes_fd())) {
      return depart(*signal, stopped(*signal));
    }
  }
}

void NodesJob::report_waiting(const Session::View& view) {
  std::string text =
      waiting_text(view.state, view.rank.has_value(), fits_, terms_, options_.timing);
  if (text.empty() || text == waiting_) return;
  core::log("{}", text);
  waiting_ = std::move(text);
}

Attempt NodesJob::attempt_of(const Session::View& view) const {
  return round_attempt(view, placement_, endpoint_.host, options_.restarts.most);
}

void NodesJob::prepare(const Session::View& view) {
  const Attempt attempt = attempt_of(view);
  Placement place = attempt.placement;
  place.master_port = 0;  // a new one for every round: no attempt sees another's keys
  try {
    store_ = listen_for_store(place);
    session_->publish({.host = placement_.local_addr, .port = store_.port},
                      job_.attempts.make_plan(attempt));
    guide_newcomers(view.state.generation);
  } catch (const core::Error& error) {
    report_error(view, error);
  }
}

std::optional<int> NodesJob::run_round(const Session::View& view) {
  if (last_.nodes == 0 && !server_) {
    core::log("joined the job at {}: this is node {} of {}", to_text(endpoint_), *view.rank,
              view.state.nodes);
  }
  if (last_.nodes > 0 && (last_.handed_over || last_.nodes != view.state.nodes)) {
    core::log("the job continues with {}; this is node {}", core::counted(view.state.nodes, "node"),
              *view.rank);
  }
  enter_round(view);
  Attempt attempt = attempt_of(view);
  attempt.exchange_silence = [this](milliseconds own) { return session_->exchange_silence(own); };
  attempt.report_lost = [this](LostReplica lost) {
    lost.round = round_;
    session_->report_lost(lost);
  };
  if (!view.leads) store_ = {.fd = core::Descriptor(), .port = view.state.store_port};
  GroupEnd end;
  try {
    AttemptPlan plan = job_.attempts.plan_attempt(attempt, store_);
    GroupOptions& group = plan.options;
    group.grace = options_.grace;
    group.reaper = &reaper_;
    for (const auto* const store : {&server_, &signpost_}) {
      if (*store) group.other_children.push_back((*store)->pid());
    }
    group.nodes = this;
    end = run_group(plan.workers, group, signals_);
    job_.attempts.attempt_ended(end, plan.workers);
    report(end, plan.workers, *view.rank);
  } catch (const core::Error& error) {
    report_error(view, error);
  }
  store_ = {};
  return await_verdict(end);
}

void NodesJob::enter_round(const Session::View& view) {
  round_ = view.state.round;
  restarts_used_ = view.state.restart;
  last_ = view.last;
}

std::optional<int> NodesJob::sit_out(const Session::View& view) {
  enter_round(view);
  store_ = {};
  session_->report({.agent = "", .round = round_, .outcome = Outcome::kStopped, .failure = {}});
  return await_verdict({});
}

NodeNews NodesJob::read_news() {
  session_->clear_changes();
  const Session::View view = session_->view();
  const bool is_other = view.state.round != round_;
  NodeNews news{.stop = !view.lost.empty() || is_other || view.state.phase != Phase::kRunning,
                .peer_lost = !view.lost.empty() || view.state.failed};
  if (!is_other) news.evicted = job_.attempts.note_lost(view.state.lost);
  return news;
}

void NodesJob::report(const GroupEnd& end, const std::vector<WorkerPlan>& plans, int node) {
  if (!end.trouble.empty()) core::log("{}", end.trouble);
  const Report report = node_report(job_, end, plans, round_, node);
  stop_status_ = report.failure ? job_.rules.exit_status(*report.failure) : report.status;
  failure_ = report.failure;
  session_->report(report);
}

void NodesJob::report_error(const Session::View& view, const core::Error& error) {
  round_ = view.state.round;
  const Report report = node_report(error, round_, *view.rank);
  failure_ = report.failure;
  session_->report(report);
}

std::optional<int> NodesJob::await_verdict(const GroupEnd& end) {
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
            wait_for_signal(signals_, kLookAround, session_->changes_fd())) {
      return depart(*signal, stopped(*signal));
    }
  }
}

std::optional<int> NodesJob::conclude(const Verdict& verdict, const GroupEnd& end) {
  failure_.reset();
  if (const JobState state = session_->view().state; state.round == round_) {
    job_.attempts.note_lost(state.lost);
  }
  std::string text = verdict.text;
  const std::string restart = verdict.failure || text.empty() ? "starting again" : text;
  if (verdict.failure || verdict.again) {
    job_.attempts.attempt_judged(verdict.failure, verdict.again ? restart : "");
  }
  if (!verdict.again && verdict.failure) {
    if (const std::optional<std::string> refusal = job_.ending.refusal(*verdict.failure)) {
      is_refused_ = true;
      text = *refusal;
    } else {
      text += job_.ending.give_up(*verdict.failure);
    }
  }
  // One that stopped by itself has logged why.
  const bool leaves = end.stop_signal != 0 || !end.trouble.empty();
  if (!text.empty() && (!leaves || verdict.failure)) {
    core::leave_bar_of_terminal();
    is_refused_ ? core::log_line(text) : core::log("{}", text);
  }
  if (verdict.again) {
    return leaves ? std::optional(depart(end.stop_signal, stop_status_)) : std::nullopt;
  }
  return verdict.code == 0 ? job_.ending.succeeded() : verdict.code;
}

int NodesJob::stopped(int signal) {
  return job_.ending.stopped({.workers = {}, .stop_signal = signal});
}

int run_job_on_nodes(const Job& job, const Placement& placement, const NodesOptions& options) {
  return NodesJob(job, placement, options).run();
}

}  // namespace scaletrain::launcher
