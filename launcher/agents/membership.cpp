#include "launcher/agents/membership.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace scaletrain::launcher {
namespace {

constexpr std::size_t kMostNamed = 16;

bool present_one(const Peer& peer) { return peer.lost.empty(); }

}  // namespace

std::string Membership::refusal(const Join& join) const {
  if (join.proof != proof_of("agent", terms_.name, terms_.token)) {
    return fmt::format("this is job \"{}\", and the agent's job or token is another", terms_.name);
  }
  if (join.nnodes != terms_.nnodes) {
    return fmt::format("it was started with --nnodes {}, and the job with {}", join.nnodes,
                       terms_.nnodes);
  }
  if (join.nproc != terms_.nproc) {
    return fmt::format("it was started with {} workers a node, and the job with {}", join.nproc,
                       terms_.nproc);
  }
  if (const auto difference = recipe::first_difference(join.recipe, terms_.recipe)) {
    return fmt::format("its recipe is not the job's: {}", *difference);
  }
  if (terms_.fixed_ranks && (join.node < 0 || join.node >= terms_.max_nodes)) {
    return fmt::format("there is no node {} of {}", join.node, terms_.max_nodes);
  }
  return "";
}

void Membership::add(const Join& join, core::SteadyTime now) {
  Peer peer;
  peer.join = join;
  peer.alive = peer.joined = now;
  peers_.push_back(std::move(peer));
}

Peer* Membership::find(const std::string& agent) {
  const auto found = std::find_if(peers_.begin(), peers_.end(),
                                  [&](const Peer& peer) { return peer.agent() == agent; });
  return found == peers_.end() ? nullptr : &*found;
}

Peer* Membership::holder_of(int node) {
  const auto found = std::find_if(peers_.begin(), peers_.end(), [&](const Peer& peer) {
    return present_one(peer) && peer.join.node == node;
  });
  return found == peers_.end() ? nullptr : &*found;
}

int Membership::present() const {
  return static_cast<int>(std::count_if(peers_.begin(), peers_.end(), present_one));
}

void Membership::clear_round() {
  peers_.erase(std::remove_if(peers_.begin(), peers_.end(),
                              [](const Peer& peer) { return !present_one(peer); }),
               peers_.end());
  for (Peer& peer : peers_) {
    peer.rank = -1;
    peer.report.reset();
  }
}

void Membership::rank(int nodes, const std::string& leader) {
  int next = 1;
  for (Peer& peer : peers_) {
    if (!present_one(peer)) continue;
    if (terms_.fixed_ranks) {
      peer.rank = peer.join.node;
    } else if (peer.agent() == leader) {
      peer.rank = 0;
    } else if (next < nodes) {
      peer.rank = next++;
    }
  }
}

std::vector<const Peer*> Membership::members() const {
  std::vector<const Peer*> result;
  for (const Peer& peer : peers_) {
    if (peer.in_round()) result.push_back(&peer);
  }
  std::sort(result.begin(), result.end(),
            [](const Peer* a, const Peer* b) { return a->rank < b->rank; });
  return result;
}

bool Membership::on_one_host() const {
  const std::vector<const Peer*> all = members();
  return std::all_of(all.begin(), all.end(), [&](const Peer* peer) {
    return !peer->join.network.empty() && peer->join.network == all.front()->join.network;
  });
}

std::chrono::milliseconds Membership::silence() const {
  std::optional<std::chrono::milliseconds> shortest;
  for (const Peer& peer : peers_) {
    if (!peer.in_round() || peer.ended()) continue;
    shortest = std::min(peer.silence, shortest.value_or(peer.silence));
  }
  return shortest.value_or(std::chrono::milliseconds(0));
}

int Membership::came_back(const LastRound& last) const {
  return static_cast<int>(std::count_if(peers_.begin(), peers_.end(), [&](const Peer& peer) {
    return peer.lost.empty() && peer.join.last.same_round(last);
  }));
}

bool Membership::has_quorum(const LastRound& last) const {
  return last.nodes == 0 || 2 * came_back(last) > last.nodes;
}

std::string Membership::missing_nodes() const {
  std::vector<std::string> missing;
  std::size_t count = 0;
  for (int node = 0; node < terms_.max_nodes; ++node) {
    const bool there = std::any_of(peers_.begin(), peers_.end(), [&](const Peer& peer) {
      return present_one(peer) && peer.join.node == node;
    });
    if (there) continue;
    if (++count <= kMostNamed) missing.push_back(fmt::format("node {}", node));
  }
  std::string text = fmt::format("{}", fmt::join(missing, ", "));
  if (count > kMostNamed) text += fmt::format(" and {} more", count - kMostNamed);
  return text;
}

}  // namespace scaletrain::launcher
