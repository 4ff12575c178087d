#include "lib/dist/mesh.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lib/core/error.h"

namespace scaletrain::dist {

using core::Axis;

// All ranks create the groups in the same order, as each creation waits for the other members.
Mesh::Mesh(Group& world, const core::MeshPlan& plan)
    : world_(world), plan_(plan), rank_(world.rank()) {
  if (plan.world_size() != world.world_size()) {
    throw core::InternalError("mesh", fmt::format("a plan of {} ranks for a job of {}",
                                                  plan.world_size(), world.world_size()));
  }
  for (const Axis axis :
       {Axis::kPipe, Axis::kReplica, Axis::kShard, Axis::kContext, Axis::kTensor}) {
    open_once(plan_.group(rank_, {axis}), core::axis_name(axis));
  }
  open_once(plan_.group(rank_, core::kDataAxes), "data");
  open_once(plan_.group(rank_, core::kGradientAxes), "gradients");
  open_once(plan_.group(rank_, core::kCopyAxes), "copies");
  open_once(plan_.model_group(rank_), "model");
  if (plan.experts() == 1) return;
  const std::vector<int> together = plan_.expert_group(rank_);
  const std::vector<int> same = plan_.same_experts(rank_);
  experts_ = &open(together, fmt::format("experts of rank {}", together.front()));
  same_experts_ = &open(same, fmt::format("same experts of rank {}", same.front()));
  if (plan.model_copies() == 1) return;
  if (plan.size(Axis::kShard) == 1) {
    open_once(in_copy(core::kGradientAxes), "gradients in the copy");
  }
  open_once(in_copy(core::kCopyAxes), "copies in the copy");
  open_once(plan_.same_place(rank_, core::kDataAxes), "replicas");
}

void Mesh::open_once(std::vector<int> ranks, const char* name) {
  const bool is_world = static_cast<int>(ranks.size()) == world_.world_size();
  if (is_world || groups_.contains(ranks)) return;
  auto group =
      std::make_unique<Group>(world_, ranks, fmt::format("{} of rank {}", name, ranks.front()));
  groups_.emplace(std::move(ranks), std::move(group));
}

Group& Mesh::group(std::initializer_list<Axis> axes) const {
  return find(replicas_are_apart_ ? in_copy(axes) : plan_.group(rank_, axes));
}

Group& Mesh::find(const std::vector<int>& ranks) const {
  if (static_cast<int>(ranks.size()) == plan_.world_size()) return world_;
  const auto found = groups_.find(ranks);
  if (found != groups_.end()) return *found->second;
  throw core::InternalError("mesh", fmt::format("no group of ranks {}", fmt::join(ranks, " ")));
}

Group& Mesh::open(const std::vector<int>& ranks, const std::string& name) {
  more_.push_back(std::make_unique<Group>(world_, ranks, name));
  return *more_.back();
}

// Members of a group that spanned several replicas may not have a group within their replica yet.
// All ranks open these in the order of their members, and those of ranks with the same experts
// last.
void Mesh::part_replicas() {
  open_once(in_copy({Axis::kReplica}), "replica axis in the copy");
  open_once(in_copy(core::kDataAxes), "data in the copy");
  open_once(in_copy(core::kGradientAxes), "all gradients in the copy");
  for (const auto& [ranks, group] : groups_) {
    const bool is_of_several =
        std::ranges::any_of(ranks, [this](int other) { return is_elsewhere(other); });
    if (is_of_several) group->go_alone("groups of several replicas");
  }
  if (same_experts_ != nullptr) same_experts_->go_alone("ranks with the same experts");
  world_.go_with(plan_.replica_group(rank_), fmt::format("replica {}", replica()));
  replicas_are_apart_ = true;
}

void Mesh::end(const char* name) {
  world_.barrier(name);
  for (const auto& group : more_) group->shut_down();
  for (const auto& [ranks, group] : groups_) group->shut_down();
  world_.shut_down();
}

}  // namespace scaletrain::dist
