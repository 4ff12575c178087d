#include "launcher/agents/admission.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace scaletrain::launcher {
namespace {

// An agent that sends this many more heartbeats keeps its rank.
constexpr std::int64_t kBeatsToKeep = 2;

}  // namespace

bool Admission::refuse_unfit(const Join& join) {
  const std::string why = membership_.refusal(join);
  if (!why.empty()) refuse(join, why);
  return !why.empty();
}

void Admission::admit(const Join& join, core::SteadyTime now) {
  const Peer* const holder = fixed_ranks_ ? membership_.holder_of(join.node) : nullptr;
  if (holder != nullptr) {
    claims_.push_back({.join = join, .beats_then = holder->beats});
  } else {
    add(join, now);
  }
}

bool Admission::settle_claims(core::SteadyTime now) {
  bool has_refused = false;
  for (auto claim = claims_.begin(); claim != claims_.end();) {
    const Peer* const holder = membership_.holder_of(claim->join.node);
    if (holder != nullptr && holder->beats < claim->beats_then + kBeatsToKeep) {
      ++claim;
      continue;
    }
    const Join join = claim->join;
    claim = claims_.erase(claim);
    if (holder == nullptr) {
      add(join, now);
    } else {
      refuse(join, fmt::format("node {} exists already: host {}", join.node,
                               holder->join.candidate.host));
      has_refused = true;
    }
  }
  return has_refused;
}

void Admission::add(const Join& join, core::SteadyTime now) {
  membership_.add(join, now);
  journal_.write("join", {{"who", join.candidate.agent}, {"node", join.node}});
}

void Admission::refuse(const Join& join, const std::string& why) {
  journal_.write("refuse", {{"who", join.candidate.agent}, {"why", why}});
  store_.set("place/" + join.candidate.agent,
             to_line(Assignment{.round = 0, .rank = -1, .refused = why}));
}

}  // namespace scaletrain::launcher
