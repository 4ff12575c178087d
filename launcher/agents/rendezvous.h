// Rendezvous of an agent: finds the leader's store, or hosts a store if this agent is to lead.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launcher/agents/key_store.h"
#include "launcher/agents/member.h"
#include "launcher/place/endpoint.h"
#include "launcher/place/placement.h"
#include "launcher/place/store_socket.h"
#include "lib/core/process/subprocess.h"

namespace scaletrain::launcher {

// A store that was found, and the process that serves it where it is this agent's own.
struct FoundStore {
  std::unique_ptr<KeyStore> store;
  std::optional<core::Process> server;
  Endpoint endpoint;
  int generation = 0;              // the leader's, present or future
  bool through_own_store = false;  // found through this agent's own store, which others may ask too
};

class Rendezvous {
 public:
  // Connects to a store that may be there; throws StoreLost.
  using Connect = std::function<std::unique_ptr<KeyStore>(const Endpoint&)>;

  // `agent`: its own name. `local_addr`: the one address to be known by, "": all of this host's.
  // `may_lead`: of a static job node 0, else every agent.
  Rendezvous(std::vector<Endpoint> endpoints, const std::string& local_addr, std::string agent,
             JobTerms terms, AgentTiming timing, bool may_lead, Connect connect = {});

  // Addresses at which this agent would host the store if another process has taken its host's
  // endpoint; they go into its join record.
  const std::vector<std::string>& addresses() const { return addresses_; }
  int port() const { return reserved_.port; }

  // After the leader was lost or has left: `state` and `last` are of the round that it led, and
  // `leader_heartbeat` is its last heartbeat.
  void begin_again(const JobState& state, const LastRound& last,
                   const std::string& leader_heartbeat, core::SteadyTime now);

  // Asks everywhere once, and hosts the store where it is this agent's turn. nullopt: nobody is
  // there yet, and why() says what was tried. Throws core::UsageError where a store is another
  // job's, or the port to host one on is taken, and core::InternalError where its own ends at once.
  // A signal in `signal_fd` ends the wait for its own store.
  std::optional<FoundStore> try_once(core::SteadyTime now, int signal_fd);
  // For a leader of `generation` that has no round yet: the store of another leader that goes
  // before, by its generation or, of the same, because its turn came first.
  std::optional<FoundStore> ask_before(int generation);
  const std::string& why() const { return why_; }
  // True if try_once would host the store now if it finds none.
  bool is_turn(core::SteadyTime now) const;

 private:
  // Returns true if the leader of a store is one to join.
  using Wanted = std::function<bool(const Hello&, KeyStore&)>;

  // Asks the store at `endpoint` for the job. `follow`: if that store names a newer one to which
  // the job has moved (launcher/agents/beacon.h), asks the newer one.
  std::optional<FoundStore> ask(const Endpoint& endpoint, const Wanted& wanted, bool follow = true);
  std::optional<FoundStore> ask_moved(const Endpoint& from, const Candidate& moved, int generation,
                                      const Wanted& wanted);
  std::optional<FoundStore> ask_candidates(std::size_t count, const Wanted& wanted);
  std::optional<FoundStore> ask_endpoints(const Wanted& wanted);
  bool leads_the_job(const Hello& hello, KeyStore& store) const;
  bool is_old_leader(const Hello& hello, KeyStore& store) const;
  std::size_t turn_of(const std::string& agent) const;
  bool is_own_endpoint(const Endpoint& endpoint) const;
  std::optional<FoundStore> host(int signal_fd);

  std::vector<Endpoint> endpoints_;
  std::string agent_;
  JobTerms terms_;
  AgentTiming timing_;
  bool may_lead_;
  Connect connect_;
  std::optional<Endpoint> own_endpoint_;
  bool first_endpoint_is_own_ = false;
  std::vector<std::string> addresses_;
  bool own_endpoint_taken_ = false;    // a leader that is not to be joined has it
  StoreSocket reserved_;               // bound, not listening: a port to host a store on
  std::vector<Candidate> candidates_;  // the last round's
  LastRound last_;
  int generation_ = 0;
  std::string leader_heartbeat_;  // the last one of the leader that was lost
  core::SteadyTime lost_at_{};
  std::set<std::string> asked_;  // in this round of questions: a host that is gone costs a second
  std::string why_;
};

}  // namespace scaletrain::launcher
