#include "lib/dist/mesh.h"

#include <fmt/format.h>

#include "lib/core/error.h"

namespace scaletrain::dist {

using core::Axis;

// The order of these is the same on all ranks: each waits in a group for the other members.
Mesh::Mesh(Group& world, const core::MeshPlan& plan) : world_(world), plan_(plan) {
  if (plan.world_size() != world.world_size()) {
    throw core::InternalError("mesh", fmt::format("a plan of {} ranks for a job of {}",
                                                  plan.world_size(), world.world_size()));
  }
  for (const Axis axis :
       {Axis::kPipe, Axis::kReplica, Axis::kShard, Axis::kContext, Axis::kTensor}) {
    open_axes({axis}, core::axis_name(axis));
  }
  open_axes(core::kDataAxes, "data");
  open_axes(core::kGradientAxes, "gradients");
  open_axes(core::kCopyAxes, "copies");
  open_axes(core::kModelAxes, "model");
}

void Mesh::open_axes(std::initializer_list<Axis> axes, const char* name) {
  std::vector<int> ranks = plan_.group(world_.rank(), axes);
  const bool is_world = static_cast<int>(ranks.size()) == world_.world_size();
  if (is_world || groups_.contains(ranks)) return;
  auto group =
      std::make_unique<Group>(world_, ranks, fmt::format("{} of rank {}", name, ranks.front()));
  groups_.emplace(std::move(ranks), std::move(group));
}

Group& Mesh::group(std::initializer_list<Axis> axes) const {
  const auto found = groups_.find(plan_.group(world_.rank(), axes));
  return found == groups_.end() ? world_ : *found->second;
}

Group& Mesh::open(const std::vector<int>& ranks, const std::string& name) {
  more_.push_back(std::make_unique<Group>(world_, ranks, name));
  return *more_.back();
}

void Mesh::end(const char* name) {
  world_.barrier(name);
  for (const auto& group : more_) group->shut_down();
  for (const auto& [ranks, group] : groups_) group->shut_down();
  world_.shut_down();
}

}  // namespace scaletrain::dist
