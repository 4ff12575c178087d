// Process groups of a rank: one for each axis of the mesh, and some for several axes.
//
// An axis over all ranks shares the job's group, and an axis of size 1 opens no connection: a
// data-parallel job has one group.
#pragma once

#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/core/plan/mesh_plan.h"
#include "lib/dist/group.h"

namespace scaletrain::dist {

class Mesh {
 public:
  // All ranks of `world` call it at once with the same plan for that number of ranks. `world` must
  // outlive the mesh. Throws the errors of Group.
  Mesh(Group& world, const core::MeshPlan& plan);

  const core::MeshPlan& plan() const { return plan_; }
  int size(core::Axis axis) const { return plan_.size(axis); }
  int rank() const { return rank_; }  // rank in the job
  int coordinate(core::Axis axis) const { return plan_.coordinate(rank_, axis); }
  // replica of this rank, if replicas are decoupled
  int replica() const { return plan_.replica(rank_); }
  // Data-parallel rank of this rank; true if it counts the samples of that dp_rank; true if it
  // counts losses (core::MeshPlan).
  int reader() const { return plan_.reader(rank_); }
  bool counts() const { return plan_.counts(rank_); }
  bool counts_losses() const { return plan_.counts_losses(rank_); }

  Group& world() const { return world_; }
  // Ranks with the same part of the model and different samples.
  Group& data() const { return group(core::kDataAxes); }
  // Ranks whose gradients are summed: those of data(), and those with other tokens of the same
  // samples.
  Group& gradients() const { return group(core::kGradientAxes); }
  // Ranks that own the same elements of the model.
  Group& copies() const { return group(core::kCopyAxes); }
  // Ranks that hold the model together with this one, some elements more than once: those of its
  // replica, or those that share experts with it.
  Group& model() const { return find(plan_.model_group(rank_)); }
  // The members of gradients() and of copies() within this model replica; the former only without
  // sharding. replicas(): from each replica, the rank at this rank's place.
  Group& gradients_of_model() const { return find(in_copy(core::kGradientAxes)); }
  Group& copies_in_model() const { return find(in_copy(core::kCopyAxes)); }
  Group& replicas() const { return find(plan_.same_place(rank_, core::kDataAxes)); }
  // Expert-parallel group of this rank, and the ranks with the same experts: separate groups, so
  // all-to-alls of tokens do not wait for gradients. Only for a plan with experts.
  Group& experts() const { return *experts_; }
  Group& same_experts() const { return *same_experts_; }
  Group& group(core::Axis axis) const { return group({axis}); }

  // Opens one more group of these ranks of the job, this one among them, in this order; end() shuts
  // it down too. `name` is used by no other group of any of them. All of them call it at once;
  // ranks with several such groups open them in the same order.
  Group& open(const std::vector<int>& ranks, const std::string& name);

  // Decouples the model replicas: they no longer wait for each other's collectives. Each becomes an
  // independent job whose ranks are the world; a group over several replicas keeps only its members
  // in this replica. Coordinates and the plan stay. All ranks call it at the same time, with no
  // collective running. Groups over several replicas that were obtained before then contain this
  // rank alone.
  void part_replicas();

  // Shuts the communicators down, the world's last, after a barrier of all ranks; no collective may
  // follow.
  void end(const char* name);

 private:
  Group& group(std::initializer_list<core::Axis> axes) const;
  Group& find(const std::vector<int>& ranks) const;
  std::vector<int> in_copy(std::initializer_list<core::Axis> axes) const {
    return plan_.in_copy(rank_, axes);
  }
  bool is_elsewhere(int rank) const {  // in another replica
    return plan_.replica(rank) != replica();
  }
  void open_once(std::vector<int> ranks, const char* name);

  Group& world_;
  core::MeshPlan plan_;
  int rank_;
  bool replicas_are_apart_ = false;
  std::map<std::vector<int>, std::unique_ptr<Group>> groups_;  // key: ranks; without the world
  std::vector<std::unique_ptr<Group>> more_;                   // made by open()
  Group *experts_ = nullptr, *same_experts_ = nullptr;         // in groups_ or more_
};

}  // namespace scaletrain::dist
