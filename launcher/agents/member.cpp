#include "launcher/agents/member.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/printable.h"

namespace scaletrain::launcher {

using core::SteadyTime;

std::optional<Hello> read_hello(KeyStore& store, const JobTerms& terms) {
  const std::optional<std::string> text = store.get("hello");
  if (!text) return std::nullopt;
  const auto hello = parse<Hello>(*text);
  if (hello.job != terms.name) {
    throw core::UsageError(
        "--rdzv-id",
        fmt::format(
            R"(the store at this address belongs to job "{}" (host {}), and this job is "{}")",
            core::printable(hello.job), core::printable(hello.host), terms.name),
        "give every node of a job the same --rdzv-id, and each job its own address");
  }
  if (hello.proof != proof_of("store", terms.name, terms.token)) {
    throw core::UsageError("SCALETRAIN_JOB_TOKEN",
                           fmt::format("host {} has another token for job \"{}\"",
                                       core::printable(hello.host), terms.name),
                           "set it to the same text on every node, or on none");
  }
  return hello;
}

Member::Member(Join join, const JobTerms& terms, AgentTiming timing, KeyStore& store,
               Journal& journal, SteadyTime now)
    : join_(std::move(join)),
      timing_(timing),
      store_(store),
      journal_(journal),
      next_beat_(now + timing.beat_every),
      leader_heartbeat_seen_(now),
      last_step_(now) {
  join_.proof = proof_of("agent", terms.name, terms.token);
  join_.recipe = terms.recipe;
  store_.set("beat/" + join_.candidate.agent, to_line(AgentHeartbeat{.count = ++beat_}));
  store_.set("place/" + join_.candidate.agent, to_line(Assignment{}));  // clears its earlier rank
  say({.join = join_});
  journal_.write("joining", {{"node", join_.node}});
}

void Member::step(SteadyTime now) {
  if (now - last_step_ > timing_.lost_after / 2)
    leader_heartbeat_seen_ = now;  // this process stood still
  last_step_ = now;
  if (now >= next_beat_) {
    next_beat_ = now + timing_.beat_every;
    store_.set("beat/" + join_.candidate.agent,
               to_line(AgentHeartbeat{.count = ++beat_, .silence = silence_}));
  }
  const std::string leader_heartbeat = store_.get("leader_heartbeat").value_or("");
  if (leader_heartbeat != leader_heartbeat_) {
    leader_heartbeat_ = leader_heartbeat;
    leader_heartbeat_seen_ = now;
    const auto read = parse<LeaderHeartbeat>(leader_heartbeat);
    job_silence_ = read.silence;
    if (read.version != version_) read_state();
    version_ = read.version;
  } else if (now - leader_heartbeat_seen_ >= timing_.lost_after) {
    throw StoreLost("the node with the store",
                    fmt::format("its launcher has sent no heartbeat for {:g} s",
                                std::chrono::duration<double>(timing_.lost_after).count()));
  }
}

void Member::read_state() {
  const std::optional<std::string> text = store_.get("state");
  if (!text) return;
  const Phase before = state_.phase;
  state_ = parse<JobState>(*text);
  if (const auto place = store_.get("place/" + join_.candidate.agent)) {
    assignment_ = parse<Assignment>(*place);
  }
  if (!assignment_.refused.empty()) {
    journal_.write("refused", {{"why", assignment_.refused}});
    if (assignment_.given_up) {
      throw core::StoppedError("the job's leader",
                               "declared this node lost: " + assignment_.refused,
                               "start it again; its log may show why it did not respond");
    }
    throw core::UsageError("the job's leader", "refuses this node: " + assignment_.refused,
                           "use the same command on every node, except for --node-rank");
  }
  if (verdicts_read_ < 0) {
    // An agent that joins late ignores earlier verdicts, except the final one.
    verdicts_read_ = state_.phase == Phase::kOver ? state_.verdicts - 1 : state_.verdicts;
  }
  while (verdicts_read_ < state_.verdicts) {
    const auto verdict = store_.get(fmt::format("verdict/{}", ++verdicts_read_));
    if (verdict) verdicts_.push_back(parse<Verdict>(*verdict));
  }
  if (state_.phase != before) {
    journal_.write("state", {{"phase", static_cast<int>(state_.phase)},
                             {"round", state_.round},
                             {"rank", rank().value_or(-1)},
                             {"reason", state_.reason}});
  }
  if (state_.phase == Phase::kOver || state_.handed_over) {
    say({.heard = join_.candidate.agent});
  }
}

std::optional<int> Member::rank() const {
  if (assignment_.round != state_.round || assignment_.rank < 0 || state_.round == 0)
    return std::nullopt;
  return assignment_.rank;
}

LastRound Member::last_round() const {
  if (!rank()) return join_.last;
  return {.generation = state_.generation,
          .round = state_.round,
          .rank = *rank(),
          .nodes = state_.nodes,
          .handed_over = state_.handed_over};
}

void Member::report(const Report& report) {
  Report full = report;
  full.agent = join_.candidate.agent;
  say({.report = std::move(full)});
}

void Member::report_lost(const LostReplica& lost) { say({.lost = lost}); }

void Member::leave(const Departure& departure) {
  journal_.write("leave", {{"signal", departure.signal}});
  say({.leaves = departure});
}

void Member::say(const Message& message) {
  store_.set(fmt::format("inbox/{}", store_.add("inbox", 1)), to_line(message));
}

}  // namespace scaletrain::launcher
