// Rendezvous of an agent: finds the leader's store, or hosts a store if this agent's turn to lead
// has come.
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

// A store, and the process that serves it if this agent hosts it.
struct FoundStore {
  std::unique_ptr<KeyStore> store;
  std::optional<core::Process> server;
  Endpoint endpoint;
  int generation = 0;              // the leader's, present or future
  bool through_own_store = false;  // found through this agent's own store, which others may ask too
};

class Rendezvous {
 public:
  // Connects to a store that may not exist; throws StoreLost.
  using Connect = std::function<std::unique_ptr<KeyStore>(const Endpoint&)>;

  // `agent`: its name. `local_addr`: the address by which it is known; "": all of this host's.
  // `may_lead`: true for node 0 of a static job and for every agent of an elastic one.
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

  // Looks for a store at all addresses once, and hosts one if it is this agent's turn. Returns
  // nullopt if there is none yet; why() has the reasons. Throws core::UsageError if a store belongs
  // to another job or the port to host one is taken, and core::InternalError if its own store ends
  // at once. A signal in `signal_fd` ends the wait for its own store.
  std::optional<FoundStore> try_once(core::SteadyTime now, int signal_fd);
  // For a leader of `generation` without a round: returns the store of a leader with precedence, of
  // a later generation, or of the same one with an earlier turn.
  std::optional<FoundStore> ask_before(int generation);
  const std::string& why() const { return why_; }
  // True if try_once() would host a store now if it finds none.
  bool is_turn(core::SteadyTime now) const;

 private:
  // Returns true if the leader of a store is one to join.
  using Wanted = std::function<bool(const Hello&, KeyStore&)>;

  // Looks for the job in the store at `endpoint`. `follow`: if that store names a newer one to
  // which the job has moved (launcher/agents/beacon.h), looks there.
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
  std::set<std::string> asked_;  // hosts asked in this search: a host that is gone costs a second
  std::string why_;
};

}  // namespace scaletrain::launcher
