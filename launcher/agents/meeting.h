// Where an agent finds the others: the store of the leader, or its own where it is to lead.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launcher/agents/endpoint.h"
#include "launcher/agents/member.h"
#include "launcher/agents/store_client.h"
#include "launcher/placement.h"
#include "launcher/store_socket.h"
#include "lib/core/subprocess.h"

namespace scaletrain::launcher {

// A store that was found, and the process that serves it where it is this agent's own.
struct Met {
  std::unique_ptr<StoreClient> store;
  std::optional<core::Process> server;
  Endpoint endpoint;
  int generation = 0;           // of the leader, or to be
  bool own_store_told = false;  // found through this agent's own store, which others may ask too
};

class Meeting {
 public:
  // `local_addr`: the one address to be known by, "": all of this host's. `may_lead`: of a static
  // job node 0, else every agent.
  Meeting(std::vector<Endpoint> endpoints, const std::string& local_addr, JobTerms terms,
          AgentTiming timing, bool may_lead);

  // Where this agent would host the store, for its join record.
  const std::vector<std::string>& addresses() const { return addresses_; }
  int port() const { return port_; }

  // After the leader was lost: `board` and `last` are of the round that it led.
  void begin_again(const Board& board, const LastRound& last, core::SteadyTime now);

  // Asks everywhere once, and hosts the store where it is this agent's turn. nullopt: nobody is
  // there yet, and why() says what was tried. Throws core::UsageError where a store is another
  // job's, or the port to host one on is taken, and core::InternalError where its own ends at once.
  // A signal in `signal_fd` ends the wait for its own store.
  std::optional<Met> try_once(core::SteadyTime now, int signal_fd);
  // For a leader of `generation` that has no round yet: the store of another that goes before, by
  // its generation or, of the same, because its turn came first.
  std::optional<Met> ask_before(int generation);
  const std::string& why() const { return why_; }
  // Whether try_once would host the store now if it finds none.
  bool is_turn(core::SteadyTime now) const;

 private:
  // `least`: no store of an earlier generation will do. `follow`: nor one that says where the
  // leader is instead (launcher/agents/beacon.h), which is asked then.
  std::optional<Met> ask(const Endpoint& endpoint, int least, bool follow = true);
  std::optional<Met> ask_moved(const Endpoint& from, const Candidate& moved, int least);
  std::optional<Met> ask_candidates(std::size_t count, int least);
  std::optional<Met> ask_endpoints(int least);
  std::optional<Met> host(int signal_fd);

  std::vector<Endpoint> endpoints_;
  JobTerms terms_;
  AgentTiming timing_;
  bool may_lead_;
  std::optional<Endpoint> own_endpoint_;
  bool first_endpoint_is_own_ = false;
  std::vector<std::string> addresses_;
  StoreSocket reserved_;  // bound, not listening: the port to host a store on
  int port_ = 0;
  std::vector<Candidate> candidates_;  // of the last round
  LastRound last_;
  int generation_ = 0;
  core::SteadyTime lost_at_{};
  std::set<std::string> asked_;  // in this round of questions: a host that is gone costs a second
  std::string why_;
};

}  // namespace scaletrain::launcher
