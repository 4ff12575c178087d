#include "launcher/jobs/replicas.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/recipe/apart.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::launcher {
namespace {

using core::ExitCode;

bool was_asked_to_stop(const WorkerEnd& end) {
  return end.status.code == static_cast<int>(ExitCode::kTemporary) ||
         end.status.code == static_cast<int>(ExitCode::kInterrupted);
}

}  // namespace

void Replicas::begin(const Placement& placement) {
  const std::lock_guard lock(mutex_);
  lost_.clear();
  placement_ = placement;
  mesh_ = core::MeshPlan(placement.world_size(), recipe_.parallel.mesh());
  train_ = false;
}

void Replicas::train() {
  const std::lock_guard lock(mutex_);
  train_ = true;
}

bool Replicas::are_decoupled() const { return recipe::replicas_are_apart(recipe_); }

bool Replicas::tolerates_loss(const WorkerEnd& end, const LastSeen& seen) const {
  if (!are_decoupled() || of(end.rank) == 0 || seen.step == 0 || seen.lost_rank_0) return false;
  const bool has_failed = !was_asked_to_stop(end) || seen.has_verdict;  // such as: lost a peer
  return has_failed || recipe_.sync.name != "diloco";
}

std::vector<int> Replicas::evicted_with(const WorkerEnd& end, const LastSeen& seen) const {
  if (was_asked_to_stop(end) && !seen.has_verdict) return {};
  std::vector<int> ranks = here(mesh_.replica_group(end.rank));
  std::erase(ranks, end.rank);
  return ranks;
}

std::optional<LostReplica> Replicas::note_own_loss(const WorkerEnd& end,
                                                   const std::vector<WorkerPlan>& plans,
                                                   const std::optional<Hang>& hang,
                                                   const LastSeen& seen) {
  GroupEnd group{.workers = {end}, .hang = hang};
  group.workers.front().was_tolerated = false;
  LostReplica lost{.number = of(end.rank), .failure = *first_failure(group, plans)};
  if (lost.failure.step < 0 && seen.step > 0) lost.failure.step = seen.step;
  if (placement_.nnodes > 1) lost.failure.node = placement_.node_rank;
  if (!lost_.note(lost)) return std::nullopt;
  log_lost(lost.failure, {lost.number});
  return lost;
}

std::vector<int> Replicas::note_losses(const std::vector<LostReplica>& lost) {
  std::vector<int> numbers;
  std::map<int, std::pair<Failure, std::vector<int>>> nodes;  // nodes that are lost themselves
  for (const LostReplica& one : lost) {
    numbers.push_back(one.number);
    if (!lost_.note(one)) continue;
    if (one.failure.rank >= 0) {
      log_lost(one.failure, {one.number});
    } else {
      auto& [failure, replicas] = nodes[one.failure.node];
      failure = one.failure;
      replicas.push_back(one.number);
    }
  }
  for (const auto& [node, what] : nodes) log_lost(what.first, what.second);
  return here(ranks_of(numbers));
}

std::vector<int> Replicas::on_node(int node) const {
  const std::lock_guard lock(mutex_);
  if (!are_decoupled() || !train_) return {};
  std::set<int> replicas;
  for (int i = 0; i < placement_.nproc; ++i) replicas.insert(of(node * placement_.nproc + i));
  if (replicas.contains(0)) return {};
  return {replicas.begin(), replicas.end()};
}

std::vector<int> Replicas::ranks_of(const std::vector<int>& replicas) const {
  std::vector<int> ranks;
  for (int rank = 0; rank < mesh_.world_size(); ++rank) {
    if (std::ranges::find(replicas, of(rank)) != replicas.end()) ranks.push_back(rank);
  }
  return ranks;
}

std::vector<int> Replicas::here(std::vector<int> ranks) const {
  std::erase_if(ranks, [&](int rank) { return rank / placement_.nproc != placement_.node_rank; });
  return ranks;
}

void Replicas::log_lost(const Failure& failure, const std::vector<int>& replicas) const {
  const std::vector<int> ranks = ranks_of(replicas);
  std::string with_it;
  if (failure.rank < 0 || ranks.size() > 1) {
    with_it =
        fmt::format(", and replica{} {} with it (rank{} {})", replicas.size() > 1 ? "s" : "",
                    fmt::join(replicas, ", "), ranks.size() > 1 ? "s" : "", fmt::join(ranks, ", "));
  }
  core::log("{}", render_lost(failure, with_it));
}

}  // namespace scaletrain::launcher
