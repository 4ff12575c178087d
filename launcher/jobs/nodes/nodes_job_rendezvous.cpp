// Joining, changing the leader and leaving: a part of NodesJob.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "launcher/agents/beacon.h"
#include "launcher/jobs/nodes/nodes_job_parts.h"
#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/core/log.h"

namespace scaletrain::launcher {
namespace {

// Between two tries to find the store.
constexpr std::chrono::milliseconds kRetry{200};

}  // namespace

std::optional<int> NodesJob::meet() {
  const core::SteadyTime start = core::now();
  while (true) {
    if (rendezvous_.is_turn(core::now())) signpost_.reset();  // its port is needed
    if (std::optional<FoundStore> met = rendezvous_.try_once(core::now(), signals_.fd())) {
      if (join(std::move(*met))) return std::nullopt;
    }
    if (core::now() - start >= options_.timing.join_timeout) {
      throw core::StoppedError(
          "rendezvous",
          fmt::format("the other nodes were not found within {:g} s: {}",
                      std::chrono::duration<double>(options_.timing.join_timeout).count(),
                      rendezvous_.why()),
          "check that the first node is up and can be reached at the address that was given");
    }
    if (const std::optional<int> signal = wait_for_signal(signals_, kRetry))
      return stopped(*signal);
  }
}

bool NodesJob::join(FoundStore met) {
  const Join join{.candidate = {.agent = agent_,
                                .host = host_name(),
                                .addresses = rendezvous_.addresses(),
                                .port = met.server ? met.endpoint.port : rendezvous_.port()},
                  .proof = "",
                  .nnodes = options_.nnodes,
                  .node = placement_.fixed_ranks ? placement_.node_rank : -1,
                  .nproc = placement_.nproc,
                  .network = own_network(),
                  .replicas = job_.attempts.memory(rendezvous_.addresses()),
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

Leader::Options NodesJob::leader_options(int generation) {
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
  options.exit_status = [this](const Failure& failure) { return job_.rules.exit_status(failure); };
  options.lost_with = [this](int node) { return job_.attempts.lost_with(node); };
  options.is_done = [this] { return job_.attempts.is_done(); };
  return options;
}

void NodesJob::guide_newcomers(int generation) {
  if (placement_.fixed_ranks || generation == 1 || beacon_.joinable()) return;
  beacon_ = start_beacon(placement_.endpoints, terms_, generation,
                         {.agent = agent_,
                          .host = host_name(),
                          .addresses = rendezvous_.addresses(),
                          .port = endpoint_.port});
}

std::optional<int> NodesJob::lose_store(const Session::View& view) {
  journal_.write("store lost", {{"why", view.lost}});
  if (view.state.handed_over) return follow_successor(view);
  if (job_.attempts.is_done() && (!failure_ || failure_->followed)) {
    core::warn("the node with the store was lost after the run was done: {}", view.lost);
    return job_.ending.succeeded();
  }
  // Other nodes may not know of it.
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
  meet_again(view);
  return std::nullopt;
}

std::optional<int> NodesJob::follow_successor(const Session::View& view) {
  const Candidate& successor = view.state.candidates.front();
  core::log("the node with the store leaves: {} leads from now on",
            successor.agent == agent_ ? "this node" : "host " + successor.host);
  meet_again(view);
  return std::nullopt;
}

void NodesJob::meet_again(const Session::View& view) {
  failure_.reset();
  last_ = view.last;
  // A leader without a round knows no more than this node. A node that joined after the leader had
  // named its successors is none of them.
  const bool knows_more = view.state.nodes > 0 && (view.rank || !view.state.handed_over);
  if (knows_more) rendezvous_.begin_again(view.state, last_, view.leader_heartbeat, core::now());
  beacon_ = {};  // ends it
  session_.reset();
  server_.reset();
}

bool NodesJob::give_way(int generation) {
  std::optional<FoundStore> met = rendezvous_.ask_before(generation);
  if (!met) return false;
  journal_.write("give way", {{"to", to_text(met->endpoint)}});
  session_.reset();
  if (met->through_own_store) signpost_.emplace(std::move(*server_));
  server_.reset();
  join(std::move(*met));
  return true;
}

int NodesJob::depart(int signal, int status) {
  session_->leave({.agent = agent_, .signal = signal, .status = status});
  while (true) {
    session_->clear_changes();
    const Session::View view = session_->view();
    if (!view.leads || view.finished || !view.lost.empty()) break;
    if (wait_for_signal(signals_, kLookAround, session_->changes_fd())) break;
  }
  while (const std::optional<Verdict> verdict = session_->take_verdict()) {
    if (verdict->again) continue;
    return verdict->code == 0 ? job_.ending.succeeded() : verdict->code;
  }
  return status;
}

void NodesJob::farewell() {
  while (session_) {
    session_->clear_changes();
    const Session::View view = session_->view();
    if (!view.leads || !view.ended || view.finished || !view.lost.empty()) return;
    wait_for_signal(signals_, kLookAround, session_->changes_fd());
  }
}

}  // namespace scaletrain::launcher
