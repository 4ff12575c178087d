#include "launcher/agents/meeting.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <thread>

#include "lib/core/log.h"

namespace scaletrain::launcher {
namespace {

using core::SteadyTime;
using std::chrono::milliseconds;

constexpr milliseconds kConnect{1000};
// A process that has just been started serves its store after a while on a busy machine.
constexpr milliseconds kOwnServer{60'000};
// How long an agent waits for each of those whose turn to lead comes before its own.
constexpr milliseconds kTurn{5000};
constexpr milliseconds kHelloEvery{50}, kHelloPatience{3000};

// How a server ended that does not answer; a connection to it may be closed a little earlier.
std::optional<core::ExitStatus> end_of(const core::Process& server, int signal_fd) {
  std::array<pollfd, 2> watched{pollfd{server.pidfd(), POLLIN, 0}, pollfd{signal_fd, POLLIN, 0}};
  poll(watched.data(), watched.size(), static_cast<int>(kConnect.count()));
  return server.ended();
}

}  // namespace

Meeting::Meeting(std::vector<Endpoint> endpoints, const std::string& local_addr, JobTerms terms,
                 AgentTiming timing, bool may_lead)
    : endpoints_(std::move(endpoints)),
      terms_(std::move(terms)),
      timing_(timing),
      may_lead_(may_lead),
      addresses_(local_addr.empty() ? own_addresses() : std::vector{local_addr}) {
  if (!may_lead_) return;
  if (terms_.fixed_ranks) {  // node 0 need not know its own name
    own_endpoint_ = endpoints_.front();
    first_endpoint_is_own_ = true;
  } else {
    const auto own = std::find_if(endpoints_.begin(), endpoints_.end(), [&](const Endpoint& one) {
      return one.host == local_addr || is_own(one.host);
    });
    if (own != endpoints_.end()) own_endpoint_ = *own;
    first_endpoint_is_own_ = own == endpoints_.begin();
  }
  if (own_endpoint_) {
    port_ = own_endpoint_->port;
    if (local_addr.empty()) {
      std::erase(addresses_, own_endpoint_->host);
      addresses_.insert(addresses_.begin(), own_endpoint_->host);
    }
  } else {
    reserved_ = reserve_port();
    port_ = reserved_.port;
  }
}

void Meeting::begin_again(const Board& board, const LastRound& last, SteadyTime now) {
  candidates_ = board.candidates;
  last_ = last;
  generation_ = board.generation;
  lost_at_ = now;
  if (may_lead_ && !own_endpoint_ && !reserved_.fd) {
    reserved_ = reserve_port();
    port_ = reserved_.port;
  }
}

std::optional<Met> Meeting::try_once(SteadyTime now, int signal_fd) {
  asked_.clear();
  const int least = last_.nodes == 0 ? 0 : generation_ + 1;
  if (std::optional<Met> met = ask_candidates(candidates_.size(), least)) return met;
  const bool fixed_leader = terms_.fixed_ranks && may_lead_;
  if (!fixed_leader) {
    if (std::optional<Met> met = ask_endpoints(least)) return met;
  }
  if (is_turn(now)) return host(signal_fd);
  return std::nullopt;
}

std::optional<Met> Meeting::ask_before(int generation) {
  asked_.clear();
  const auto before = static_cast<std::size_t>(std::max(0, last_.rank));
  if (std::optional<Met> met = ask_candidates(before, generation)) return met;
  return ask_endpoints(generation + 1);
}

// The first `count` agents of the last round, this one left out.
std::optional<Met> Meeting::ask_candidates(std::size_t count, int least) {
  for (std::size_t rank = 0; rank < std::min(count, candidates_.size()); ++rank) {
    if (static_cast<int>(rank) == last_.rank) continue;
    for (const std::string& address : candidates_[rank].addresses) {
      const Endpoint endpoint{.host = address, .port = candidates_[rank].port};
      if (std::optional<Met> met = ask(endpoint, least)) return met;
    }
  }
  return std::nullopt;
}

std::optional<Met> Meeting::ask_endpoints(int least) {
  for (const Endpoint& endpoint : endpoints_) {
    if (std::optional<Met> met = ask(endpoint, least)) return met;
  }
  return std::nullopt;
}

std::optional<Met> Meeting::ask(const Endpoint& endpoint, int least, bool follow) {
  if (!asked_.insert(to_text(endpoint)).second) return std::nullopt;
  try {
    auto store = std::make_unique<StoreClient>(endpoint, kConnect, timing_.lost_after);
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
      if (!follow) return std::nullopt;
      return ask_moved(endpoint, parse<Candidate>(*moved), std::max(least, hello->generation + 1));
    }
    // The leader of the last round again: only the connection to it was lost.
    const bool same = !candidates_.empty() && hello->agent == candidates_.front().agent &&
                      hello->generation == generation_;
    if (hello->generation < least && !same) {
      why_ = fmt::format("the store at {}: its leader was not part of the last round",
                         to_text(endpoint));
      return std::nullopt;
    }
    return Met{.store = std::move(store),
               .server = std::nullopt,
               .endpoint = endpoint,
               .generation = hello->generation};
  } catch (const StoreLost& error) {
    why_ = fmt::format("{}: {}", error.place(), error.found());
    return std::nullopt;
  }
}

std::optional<Met> Meeting::ask_moved(const Endpoint& from, const Candidate& moved, int least) {
  for (const std::string& address : moved.addresses) {
    if (auto met = ask({.host = address, .port = moved.port}, least, false)) {
      met->own_store_told = own_endpoint_ && to_text(from) == to_text(*own_endpoint_);
      return met;
    }
  }
  return std::nullopt;
}

bool Meeting::is_turn(SteadyTime now) const {
  if (!may_lead_) return false;
  if (last_.nodes == 0) return first_endpoint_is_own_;
  // Only its candidates know of each other; the first was the leader that is gone.
  if (last_.rank >= static_cast<int>(candidates_.size())) return false;
  return now - lost_at_ >= kTurn * std::max(0, last_.rank - 1);
}

std::optional<Met> Meeting::host(int signal_fd) {
  Placement place;
  place.nnodes = terms_.max_nodes;
  place.master_addr = addresses_.empty() ? "127.0.0.1" : addresses_.front();
  place.master_port = port_;
  const bool fixed = own_endpoint_.has_value();
  StoreSocket socket;
  try {
    socket = fixed ? listen_for_store(place) : start_listening(std::move(reserved_));
  } catch (const core::UsageError&) {
    if (terms_.fixed_ranks) throw;
    why_ = fmt::format("port {} is taken on this host", port_);  // by another agent of this host?
    return std::nullopt;
  }
  core::Process server = core::Process::spawn(store_server(socket.fd.get()));
  socket.fd.reset();  // with it open, a connection would wait for a server that has ended
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
          "its own message, if it left one, stands above");
    }
    if (!fixed) reserved_ = reserve_port();
    if (!fixed) port_ = reserved_.port;
    return std::nullopt;
  }
  return Met{.store = std::move(store),
             .server = std::move(server),
             .endpoint = {.host = place.master_addr, .port = socket.port},
             .generation = generation_ + 1};
}

}  // namespace scaletrain::launcher
