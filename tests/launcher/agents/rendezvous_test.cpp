// Which store an agent takes for the job's, at stores that are maps.
#include "launcher/agents/rendezvous.h"

#include <doctest/doctest.h>

#include "tests/launcher/agents/agents_support.h"

namespace scaletrain::launcher {
namespace {

// Three agents of a round that "a" led; "a" and "b" are on the host of the only endpoint, "c" is
// elsewhere.
const Endpoint kEndpoint{.host = "127.0.0.1", .port = 29400};
const std::vector<Candidate> kRound{
    {.agent = "a", .host = "h1", .addresses = {"127.0.0.1"}, .port = 29400},
    {.agent = "b", .host = "h1", .addresses = {"127.0.0.1"}, .port = 41},
    {.agent = "c", .host = "h2", .addresses = {"10.0.0.2"}, .port = 42}};

class Stores {
 public:
  // Leads at `place`; the heartbeat of a leader that stands still does not change.
  Table& lead(const std::string& place, const std::string& agent, int generation) {
    tables_[place] = std::make_shared<Table>();
    Table& table = *tables_[place];
    table.values["hello"] = to_line(Hello{.job = "job",
                                          .proof = proof_of("store", "job", ""),
                                          .agent = agent,
                                          .host = "h",
                                          .generation = generation});
    table.values["leader_heartbeat"] = "8 1";
    return table;
  }

  std::unique_ptr<KeyStore> connect(const Endpoint& endpoint) const {
    const auto found = tables_.find(to_text(endpoint));
    if (found == tables_.end()) throw StoreLost(to_text(endpoint), "Connection refused");
    return std::make_unique<MemoryStore>(found->second);
  }

  // The agent number `rank` of the round, which has lost its leader, or whose leader has named it
  // and the others when it left.
  Rendezvous agent(int rank, bool handed_over = false) const {
    Rendezvous meeting({kEndpoint}, rank == 2 ? "10.0.0.2" : "",
                       kRound[static_cast<std::size_t>(rank)].agent, elastic_terms(1, 3), {}, true,
                       [this](const Endpoint& endpoint) { return connect(endpoint); });
    JobState state;
    state.generation = 1;
    state.nodes = 3;
    state.candidates = kRound;
    const LastRound last{
        .generation = 1, .round = 4, .rank = rank, .nodes = 3, .handed_over = handed_over};
    meeting.begin_again(state, last, "7 1", core::SteadyTime{} + std::chrono::hours(1));
    return meeting;
  }

 private:
  std::map<std::string, std::shared_ptr<Table>> tables_;
};

// Where an agent that may not lead yet goes; "": nowhere.
std::string found_by(Rendezvous meeting) {
  const auto met = meeting.try_once(core::SteadyTime{}, -1);
  return met ? to_text(met->endpoint) : "";
}

// Where one that leads in generation 2, alone so far, goes.
std::string gives_way_to(Rendezvous meeting) {
  const auto met = meeting.ask_before(2);
  return met ? to_text(met->endpoint) : "";
}

TEST_CASE("a leader that took over at an endpoint of its host does not give way to itself") {
  Stores stores;
  stores.lead("127.0.0.1:29400", "b", 2);
  CHECK(gives_way_to(stores.agent(1)) == "");
  CHECK(found_by(stores.agent(2)) == "127.0.0.1:29400");
}

TEST_CASE("of two leaders of one generation the one with the higher number gives way") {
  Stores stores;
  stores.lead("127.0.0.1:29400", "b", 2);
  stores.lead("10.0.0.2:42", "c", 2);
  CHECK(gives_way_to(stores.agent(1)) == "");
  CHECK(gives_way_to(stores.agent(2)) == "127.0.0.1:29400");
}

TEST_CASE("the successor leads at once, the others in turn") {
  const Stores stores;
  const core::SteadyTime lost_at = core::SteadyTime{} + std::chrono::hours(1);
  CHECK(stores.agent(1).is_turn(lost_at));
  CHECK_FALSE(stores.agent(2).is_turn(lost_at));
  CHECK(stores.agent(0, true).is_turn(lost_at));
  CHECK_FALSE(stores.agent(1, true).is_turn(lost_at));
  CHECK(stores.agent(1, true).is_turn(lost_at + std::chrono::seconds(5)));
}

TEST_CASE("a leader gives way to a later generation") {
  Stores stores;
  stores.lead("127.0.0.1:29400", "c", 3);
  CHECK(gives_way_to(stores.agent(1)) == "127.0.0.1:29400");
}

TEST_CASE("nodes of a round follow the pointer to the job at an endpoint, not a new leader there") {
  Stores stores;
  Table& newcomer = stores.lead("127.0.0.1:29400", "d", 1);
  CHECK(found_by(stores.agent(2)) == "");
  stores.lead("10.0.0.9:7", "b", 2);
  newcomer.values["moved"] =
      to_line(Candidate{.agent = "b", .host = "h9", .addresses = {"10.0.0.9"}, .port = 7});
  CHECK(found_by(stores.agent(2)) == "10.0.0.9:7");
}

TEST_CASE("agents rejoin an old leader that still runs, not one that is suspended") {
  Stores stores;
  Table& leader = stores.lead("127.0.0.1:29400", "a", 1);
  CHECK(found_by(stores.agent(2)) == "127.0.0.1:29400");
  CHECK(gives_way_to(stores.agent(2)) == "127.0.0.1:29400");  // cut off, it led alone meanwhile
  leader.values["leader_heartbeat"] = "7 1";
  CHECK(found_by(stores.agent(2)) == "");
}

}  // namespace
}  // namespace scaletrain::launcher
