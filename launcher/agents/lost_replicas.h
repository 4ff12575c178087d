// Replicas that a job has lost and continues without (lib/recipe/apart.h).
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "launcher/agents/records.h"

namespace scaletrain::launcher {

class LostReplicas {
 public:
  explicit LostReplicas(std::vector<LostReplica> known = {}) : lost_(std::move(known)) {}

  // Records the loss `one`. Returns true if it adds information. A replica that is already recorded
  // as lost adds information only if `one` is the root cause and the recorded failure was a
  // consequence of it.
  bool note(LostReplica one);
  void clear() { lost_.clear(); }

  bool empty() const { return lost_.empty(); }
  std::size_t count() const { return lost_.size(); }
  const std::vector<LostReplica>& all() const { return lost_; }
  // Returns "rank 2 (killed by SIGKILL, step 40), node 3 (lost)"; a lost node is listed once.
  std::string text() const;

 private:
  std::vector<LostReplica> lost_;  // in the order of their ends
};

}  // namespace scaletrain::launcher
