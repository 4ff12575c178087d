#include "launcher/agents/rendezvous.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <thread>

#include "launcher/agents/store_client.h"
#include "lib/core/log.h"

namespace scaletrain::launcher {
namespace {

using core::SteadyTime;
using std::chrono::milliseconds;

constexpr milliseconds kConnect{1000};
// A process that has just been started serves its store after a while on a busy machine.
constexpr milliseconds kOwnServer{60'000};
// Time that an agent waits for each candidate whose turn to lead comes before its own.
constexpr milliseconds kTurn{5000};
constexpr milliseconds kHelloEvery{50}, kHelloPatience{3000};

// How a server ended that does not answer; a connection to it may be closed a little earlier.
std::optional<core::ExitStatus> end_of(const core::Process& server, int signal_fd) {
  std::array<pollfd, 2> watched{pollfd{server.pidfd(), POLLIN, 0}, pollfd{signal_fd, POLLIN, 0}};
  poll(watched.data(), watched.size(), static_cast<int>(kConnect.count()));
  return server.ended();
}

// The one loopback address by which every process of this machine reaches a store.
bool is_on_loopback(const std::string& host) { return host == "127.0.0.1" || host == "localhost"; }

}  // namespace

Rendezvous::Rendezvous(std::vector<Endpoint> endpoints, const std::string& local_addr,
                       std::string agent, JobTerms terms, AgentTiming timing, bool may_lead,
                       Connect connect)
    : endpoints_(std::move(endpoints)),
      agent_(std::move(agent)),
      terms_(std::move(terms)),
      timing_(timing),
      may_lead_(may_lead),
      connect_(std::move(connect)),
      addresses_(local_addr.empty() ? own_addresses() : std::vector{local_addr}) {
  if (!connect_) {
    connect_ = [patience = timing.lost_after](const Endpoint& endpoint) {
      return std::make_unique<StoreClient>(endpoint, kConnect, patience);
    };
  }
  if (!may_lead_) return;
  if (terms_.fixed_ranks) {  // node 0 need not know its own host name
    own_endpoint_ = endpoints_.front();
    first_endpoint_is_own_ = true;
  } else {
    const auto own = std::find_if(endpoints_.begin(), endpoints_.end(), [&](const Endpoint& one) {
      return one.host == local_addr || is_own(one.host);
    });
    if (own != endpoints_.end()) own_endpoint_ = *own;
    first_endpoint_is_own_ = own == endpoints_.begin();
    reserved_ = reserve_port();
  }
  if (own_endpoint_ && local_addr.empty()) {
    std::erase(addresses_, own_endpoint_->host);
    addresses_.insert(addresses_.begin(), own_endpoint_->host);
  }
}

void Rendezvous::begin_again(const JobState& state, const LastRound& last,
                             const std::string& leader_heartbeat, SteadyTime now) {
  candidates_ = state.candidates;
  last_ = last;
  generation_ = state.generation;
  leader_heartbeat_ = leader_heartbeat;
  lost_at_ = now;
  if (may_lead_ && !terms_.fixed_ranks && !reserved_.fd) reserved_ = reserve_port();
}

std::optional<FoundStore> Rendezvous::try_once(SteadyTime now, int signal_fd) {
  asked_.clear();
  own_endpoint_taken_ = false;
  const bool fixed_leader = terms_.fixed_ranks && may_lead_;
  if (!fixed_leader) {
    const auto wanted = [this](const Hello& hello, KeyStore& store) {
      return leads_the_job(hello, store);
    };
    if (std::optional<FoundStore> met = ask_candidates(candidates_.size(), wanted)) return met;
    if (std::optional<FoundStore> met = ask_endpoints(wanted)) return met;
  }
  if (is_turn(now)) return host(signal_fd);
  return std::nullopt;
}

std::optional<FoundStore> Rendezvous::ask_before(int generation) {
  asked_.clear();
  // Compares names: agents of one host share its endpoint, so the leader at another's address may
  // be this agent itself.
  const auto wanted = [&](const Hello& hello, KeyStore& store) {
    return is_old_leader(hello, store) || hello.generation > generation ||
           (hello.generation == generation && turn_of(hello.agent) < turn_of(agent_));
  };
  if (std::optional<FoundStore> met = ask_candidates(turn_of(agent_), wanted)) return met;
  return ask_endpoints(wanted);
}

// Returns the agent's position among the candidates of the last round; the end if it is not one of
// them.
std::size_t Rendezvous::turn_of(const std::string& agent) const {
  const auto found = std::find_if(candidates_.begin(), candidates_.end(),
                                  [&](const Candidate& one) { return one.agent == agent; });
  return static_cast<std::size_t>(found - candidates_.begin());
}

bool Rendezvous::leads_the_job(const Hello& hello, KeyStore& store) const {
  return last_.nodes == 0 || hello.generation > generation_ || is_old_leader(hello, store);
}

// True if it is the leader of the last round: only the connection was lost, unless the leader has
// stopped.
bool Rendezvous::is_old_leader(const Hello& hello, KeyStore& store) const {
  return !candidates_.empty() && hello.agent == candidates_.front().agent &&
         hello.generation == generation_ && store.get("leader_heartbeat") != leader_heartbeat_;
}

// The first `count` agents of the last round.
std::optional<FoundStore> Rendezvous::ask_candidates(std::size_t count, const Wanted& wanted) {
  for (std::size_t rank = 0; rank < std::min(count, candidates_.size()); ++rank) {
    const Candidate& candidate = candidates_[rank];
    if (candidate.agent == agent_) continue;
    for (const std::string& address : candidate.addresses) {
      if (auto met = ask({.host = address, .port = candidate.port}, wanted)) return met;
    }
  }
  return std::nullopt;
}

std::optional<FoundStore> Rendezvous::ask_endpoints(const Wanted& wanted) {
  for (const Endpoint& endpoint : endpoints_) {
    if (std::optional<FoundStore> met = ask(endpoint, wanted)) return met;
  }
  return std::nullopt;
}

std::optional<FoundStore> Rendezvous::ask(const Endpoint& endpoint, const Wanted& wanted,
                                          bool follow) {
  if (!asked_.insert(to_text(endpoint)).second) return std::nullopt;
  try {
    std::unique_ptr<KeyStore> store = connect_(endpoint);
    const SteadyTime end = core::now() + kHelloPatience;
    std::optional<Hello> hello = read_hello(*store, terms_);
    while (!hello && core::now() < end) {
      std::this_thread::sleep_for(kHelloEvery);
      hello = read_hello(*store, terms_);
    }
    if (!hello) {
      why_ = fmt::format("the store at {}: no launcher leads there", to_text(endpoint));
      return std::nullopt;
    }
    if (const std::optional<std::string> moved = store->get("moved")) {
      why_ = fmt::format("the store at {}: the job has moved from there", to_text(endpoint));
      own_endpoint_taken_ = own_endpoint_taken_ || is_own_endpoint(endpoint);
      if (!follow) return std::nullopt;
      return ask_moved(endpoint, parse<Candidate>(*moved), hello->generation, wanted);
    }
    if (!wanted(*hello, *store)) {
      why_ = fmt::format("the store at {}: its leader stands still, or was not part of the round",
                         to_text(endpoint));
      own_endpoint_taken_ = own_endpoint_taken_ || is_own_endpoint(endpoint);
      return std::nullopt;
    }
    return FoundStore{.store = std::move(store),
                      .server = std::nullopt,
                      .endpoint = endpoint,
                      .generation = hello->generation};
  } catch (const StoreLost& error) {
    why_ = fmt::format("{}: {}", error.place(), error.found());
    return std::nullopt;
  }
}

// Connects to the store to which, according to the store of an earlier `generation`, the job has
// moved.
std::optional<FoundStore> Rendezvous::ask_moved(const Endpoint& from, const Candidate& moved,
                                                int generation, const Wanted& wanted) {
  const auto later = [&](const Hello& hello, KeyStore& store) {
    return hello.generation > generation && wanted(hello, store);
  };
  for (const std::string& address : moved.addresses) {
    if (auto met = ask({.host = address, .port = moved.port}, later, false)) {
      met->through_own_store = is_own_endpoint(from);
      return met;
    }
  }
  return std::nullopt;
}

bool Rendezvous::is_own_endpoint(const Endpoint& endpoint) const {
  return own_endpoint_ && to_text(endpoint) == to_text(*own_endpoint_);
}

bool Rendezvous::is_turn(SteadyTime now) const {
  if (!may_lead_) return false;
  if (last_.nodes == 0) return first_endpoint_is_own_;
  // Only candidates know each other. The first of them was the lost leader, unless that leader
  // named them when it left.
  if (last_.rank >= static_cast<int>(candidates_.size())) return false;
  return now - lost_at_ >= kTurn * std::max(0, last_.rank - (last_.handed_over ? 0 : 1));
}

std::optional<FoundStore> Rendezvous::host(int signal_fd) {
  Placement place;
  place.nnodes = terms_.max_nodes;
  place.master_addr = addresses_.empty() ? "127.0.0.1" : addresses_.front();
  // Nodes of the last round find a successor elsewhere too; newcomers know the endpoints only.
  const bool elsewhere = !own_endpoint_ || (own_endpoint_taken_ && last_.nodes > 0);
  place.master_port = elsewhere ? reserved_.port : own_endpoint_->port;
  // Nodes connect to the endpoint and to the address of this node, which may be different ones.
  Placement listens = place;
  if (!is_on_loopback(place.master_addr) || !own_endpoint_ ||
      !is_on_loopback(own_endpoint_->host)) {
    listens.master_addr = "::";
  }
  StoreSocket socket;
  try {
    socket = elsewhere ? start_listening(std::move(reserved_)) : listen_for_store(listens);
  } catch (const core::UsageError&) {
    if (terms_.fixed_ranks) throw;
    if (elsewhere) reserved_ = reserve_port();
    why_ = fmt::format("port {} is taken on this host", place.master_port);  // another agent?
    return std::nullopt;
  }
  core::Process server = core::Process::spawn(store_server(socket.fd.get()));
  socket.fd.reset();  // while it is open, a connection would wait for a server that has ended
  std::unique_ptr<StoreClient> store;
  try {
    store = std::make_unique<StoreClient>(Endpoint{.host = "127.0.0.1", .port = socket.port},
                                          kConnect, std::min(kOwnServer, timing_.join_timeout),
                                          std::vector{server.pidfd(), signal_fd});
  } catch (const StoreLost& error) {
    why_ = fmt::format("{}: {}", error.place(), error.found());
    if (const std::optional<core::ExitStatus> end = end_of(server, signal_fd)) {
      throw core::InternalError(
          "the store", fmt::format("the process that serves it ended: {}", core::to_text(*end)),
          "its message, if there is one, is above");
    }
    if (elsewhere) reserved_ = reserve_port();
    return std::nullopt;
  }
  return FoundStore{.store = std::move(store),
                    .server = std::move(server),
                    .endpoint = {.host = place.master_addr, .port = socket.port},
                    .generation = generation_ + 1};
}

}  // namespace scaletrain::launcher
