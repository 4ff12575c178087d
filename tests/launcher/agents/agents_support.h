// Agents of one job in one process, in simulated time, at stores that are maps.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/agents/leader.h"
#include "launcher/agents/member.h"

namespace scaletrain::launcher {

using std::chrono::milliseconds;

struct Table {
  std::map<std::string, std::string> values;
};

// One agent's connection to a table, which a test may cut.
class MemoryStore : public KeyStore {
 public:
  explicit MemoryStore(std::shared_ptr<Table> table) : table_(std::move(table)) {}

  void cut() { table_ = nullptr; }

  void set(const std::string& key, const std::string& value) override { values()[key] = value; }
  std::optional<std::string> get(const std::string& key) override {
    const auto found = values().find(key);
    if (found == values().end()) return std::nullopt;
    return found->second;
  }
  std::vector<std::string> get_all(const std::vector<std::string>& keys) override {
    std::vector<std::string> result;
    for (const std::string& key : keys) result.push_back(values().at(key));
    return result;
  }
  std::int64_t add(const std::string& key, std::int64_t delta) override {
    std::string& value = values()[key];
    value = std::to_string((value.empty() ? 0 : std::stoll(value)) + delta);
    return std::stoll(value);
  }

 private:
  std::map<std::string, std::string>& values() {
    if (!table_) throw StoreLost("the store", "the connection was cut");
    return table_->values;
  }
  std::shared_ptr<Table> table_;
};

struct TestAgent {
  std::string name;
  std::unique_ptr<MemoryStore> store;
  std::unique_ptr<Member> member;
  bool frozen = false;  // as its launcher under SIGSTOP, or gone
  std::string lost, refused;
  std::vector<Verdict> verdicts;

  Phase phase() const { return member->state().phase; }
};

struct Cluster {
  explicit Cluster(JobTerms job) : terms(std::move(job)) {
    timing.last_call = milliseconds(3000);
    timing.join_timeout = milliseconds(60'000);
  }

  Leader& lead(const std::string& name, int node = 0, int generation = 1, LastRound last = {},
               RestartLimits limits = {}) {
    leader_store = std::make_unique<MemoryStore>(table);
    Leader::Options options;
    options.terms = terms;
    options.agent = options.host = name;
    options.timing = timing;
    options.restarts = limits;
    options.generation = generation;
    options.last = last;
    options.fits = fits;
    options.lost_with = lost_with;
    options.is_done = is_done;
    options.worth_restart = [](const Failure& failure) { return failure.status.code != 2; };
    options.exit_status = [](const Failure& failure) { return failure.status.shell_code(); };
    leader = std::make_unique<Leader>(std::move(options), *leader_store, journal, now);
    join(name, node, last);
    return *leader;
  }

  TestAgent& join(const std::string& name, int node = -1, LastRound last = {}) {
    const Join join{
        .candidate = {.agent = name, .host = "host-" + name, .addresses = {}, .port = 1},
        .proof = "",
        .nnodes = terms.nnodes,
        .node = node,
        .nproc = terms.nproc,
        .network = network,
        .last = last};
    return join_as(join, terms);
  }

  TestAgent& join_as(const Join& join, const JobTerms& own_terms) {
    agents.push_back(std::make_unique<TestAgent>());
    TestAgent& agent = *agents.back();
    agent.name = join.candidate.agent;
    agent.store = std::make_unique<MemoryStore>(table);
    agent.member = std::make_unique<Member>(join, own_terms, timing, *agent.store, journal, now);
    return agent;
  }

  void run(milliseconds time) {
    for (const core::SteadyTime end = now + time; now < end; now += milliseconds(50)) {
      if (leader && !leader_frozen) leader->step(now);
      for (const auto& agent : agents) step(*agent);
    }
  }

  void step(TestAgent& agent) const {
    if (agent.frozen || !agent.lost.empty() || !agent.refused.empty()) return;
    try {
      agent.member->step(now);
    } catch (const StoreLost& error) {
      agent.lost = error.what();
    } catch (const core::Error& error) {
      agent.refused = error.what();
    }
    while (!agent.member->verdicts().empty()) {
      agent.verdicts.push_back(agent.member->verdicts().front());
      agent.member->verdicts().pop_front();
    }
  }

  void start_round() {
    leader->publish({.host = "", .port = 4000 + leader->state().round}, "plan");
    run(milliseconds(200));
  }

  void report(TestAgent& agent, Outcome outcome, std::optional<Failure> failure = {},
              int signal = 0, int status = 0) {
    agent.member->report(
        {.agent = "",
         .round = agent.member->state().round,
         .outcome = outcome,
         .signal = signal,
         .status = status,
         .reason = signal != 0 ? "its launcher received " + core::signal_name(signal) : "",
         .failure = std::move(failure)});
  }

  // The launcher of an agent hears a signal between two rounds, or after it has reported.
  void leave(TestAgent& agent, int signal, int status) {
    const Departure departure{.agent = agent.name, .signal = signal, .status = status};
    if (&agent == agents.front().get()) {  // the leader's, which stays for a while
      leader->leave(departure, now);
    } else {
      agent.member->leave(departure);
      agent.frozen = true;
    }
    run(milliseconds(300));
  }

  void report_all(Outcome outcome) {
    for (const auto& agent : agents) {
      if (!agent->frozen) report(*agent, outcome);
    }
    run(milliseconds(300));
  }

  JobTerms terms;
  AgentTiming timing;
  std::function<bool(int)> fits = [](int) { return true; };
  std::function<std::vector<int>(int)> lost_with = [](int) { return std::vector<int>(); };
  std::function<bool()> is_done = [] { return false; };
  std::string network = "host";  // of those who join from now on
  std::shared_ptr<Table> table = std::make_shared<Table>();
  Journal journal;
  core::SteadyTime now = core::SteadyTime{} + std::chrono::hours(1);
  std::unique_ptr<MemoryStore> leader_store;
  std::unique_ptr<Leader> leader;
  bool leader_frozen = false;
  std::vector<std::unique_ptr<TestAgent>> agents;
};

inline JobTerms fixed_terms(int nodes) {
  return {.name = "job",
          .token = "",
          .nnodes = std::to_string(nodes),
          .min_nodes = nodes,
          .max_nodes = nodes,
          .nproc = 2,
          .fixed_ranks = true};
}

inline JobTerms elastic_terms(int least, int most) {
  return {.name = "job",
          .token = "",
          .nnodes = fmt::format("{}:{}", least, most),
          .min_nodes = least,
          .max_nodes = most,
          .nproc = 2,
          .fixed_ranks = false};
}

inline Failure failure_of_rank(int rank, int code, bool followed = false) {
  Failure failure{.host = "h", .node = rank / 2, .rank = rank, .local_rank = rank % 2, .pid = 7};
  failure.status.code = code;
  failure.followed = followed;
  return failure;
}

}  // namespace scaletrain::launcher
