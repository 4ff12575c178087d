// Admits agents to a job: refuses those that do not fit, and settles claims on a fixed rank.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launcher/agents/journal.h"
#include "launcher/agents/key_store.h"
#include "launcher/agents/membership.h"
#include "launcher/agents/records.h"

namespace scaletrain::launcher {

class Admission {
 public:
  // The references must outlive this. `fixed_ranks`: every agent brings its node's rank.
  Admission(bool fixed_ranks, Membership& membership, KeyStore& store, Journal& journal)
      : fixed_ranks_(fixed_ranks), membership_(membership), store_(store), journal_(journal) {}

  // Returns true if `join` was refused, and writes the refusal into the store.
  bool refuse_unfit(const Join& join);

  // Adds the agent of `join`, or notes its claim if another agent holds its fixed rank.
  void admit(const Join& join, core::SteadyTime now);

  // Settles claims: the holder of the rank shows that it is alive, or is lost and replaced. Returns
  // true if a claim was refused.
  bool settle_claims(core::SteadyTime now);
  bool has_claims() const { return !claims_.empty(); }

 private:
  struct Claim {  // on a fixed rank that another agent holds, which may be dead
    Join join;
    std::int64_t beats_then = 0;
  };

  void add(const Join& join, core::SteadyTime now);
  void refuse(const Join& join, const std::string& why);

  bool fixed_ranks_;
  Membership& membership_;
  KeyStore& store_;
  Journal& journal_;
  std::vector<Claim> claims_;
};

}  // namespace scaletrain::launcher
