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
        fmt::format(R"(the store there is that of job "{}" (host {}), and this one is "{}")",
                    core::printable(hello.job), core::printable(hello.host), terms.name),
        "give every node of a job the same --rdzv-id, and every job an address of its own");
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
      pulse_seen_(now),
      last_step_(now) {
  join_.proof = proof_of("agent", terms.name, terms.token);
  join_.recipe = terms.recipe;
  store_.set("beat/" + join_.candidate.agent, to_line(AgentBeat{.count = ++beat_}));
  store_.set("place/" + join_.candidate.agent, to_line(Place{}));  // its earlier place is void
  say({.join = join_});
  journal_.write("joining", {{"node", join_.node}});
}

void Member::step(SteadyTime now) {
  if (now - last_step_ > timing_.lost_after / 2) pulse_seen_ = now;  // this process stood still
  last_step_ = now;
  if (now >= next_beat_) {
    next_beat_ = now + timing_.beat_every;
    store_.set("beat/" + join_.candidate.agent,
               to_line(AgentBeat{.count = ++beat_, .silence = silence_}));
  }
  const std::string pulse = store_.get("pulse").value_or("");
  if (pulse != pulse_) {
    pulse_ = pulse;
    pulse_seen_ = now;
    const auto read = parse<Pulse>(pulse);
    job_silence_ = read.silence;
    if (read.version != version_) read_board();
    version_ = read.version;
  } else if (now - pulse_seen_ >= timing_.lost_after) {
    throw StoreLost("the node with the store",
                    fmt::format("nothing was heard of its launcher for {:g} s",
                                std::chrono::duration<double>(timing_.lost_after).count()));
  }
}

void Member::read_board() {
  const std::optional<std::string> text = store_.get("board");
  if (!text) return;
  const Phase before = board_.phase;
  board_ = parse<Board>(*text);
  if (const auto place = store_.get("place/" + join_.candidate.agent)) {
    place_ = parse<Place>(*place);
  }
  if (!place_.refused.empty()) {
    journal_.write("refused", {{"why", place_.refused}});
    if (place_.given_up) {
      throw core::StoppedError("the job's leader", "gave this node up: " + place_.refused,
                               "start it again, and see what kept it from running");
    }
    throw core::UsageError("the job's leader", "refuses this node: " + place_.refused,
                           "give every node the same command, less --node-rank");
  }
  if (verdicts_read_ < 0) {
    // One who comes late has no part in what was judged before, but in the end.
    verdicts_read_ = board_.phase == Phase::kOver ? board_.verdicts - 1 : board_.verdicts;
  }
  while (verdicts_read_ < board_.verdicts) {
    const auto verdict = store_.get(fmt::format("verdict/{}", ++verdicts_read_));
    if (verdict) verdicts_.push_back(parse<Verdict>(*verdict));
  }
  if (board_.phase != before) {
    journal_.write("board", {{"phase", static_cast<int>(board_.phase)},
                             {"round", board_.round},
                             {"rank", rank().value_or(-1)},
                             {"reason", board_.reason}});
  }
  if (board_.phase == Phase::kOver || board_.handed_over) {
    say({.heard = join_.candidate.agent});
  }
}

std::optional<int> Member::rank() const {
  if (place_.round != board_.round || place_.rank < 0 || board_.round == 0) return std::nullopt;
  return place_.rank;
}

LastRound Member::last_round() const {
  if (!rank()) return join_.last;
  return {.generation = board_.generation,
          .round = board_.round,
          .rank = *rank(),
          .nodes = board_.nodes,
          .handed_over = board_.handed_over};
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
