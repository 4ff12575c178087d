// A rank's groups: one along each axis of the mesh, and those that are views of several.
//
// An axis that is the whole job shares the job's group, one of size 1 opens nothing: a plain job
// has one group, as without a mesh.
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
  // Every rank of `world`, which must outlive the mesh, calls it at once with the same plan of as
  // many ranks. Throws what Group does.
  Mesh(Group& world, const core::MeshPlan& plan);

  const core::MeshPlan& plan() const { return plan_; }
  int size(core::Axis axis) const { return plan_.size(axis); }
  int rank() const { return rank_; }  // rank in the job
  int coordinate(core::Axis axis) const { return plan_.coordinate(rank_, axis); }
  // Its copy of the model, where those train alone.
  int replica() const { return plan_.replica(rank_); }
  // This rank's data coordinate, whether it is the one that counts the samples of that, and
  // whether it counts losses (core::MeshPlan).
  int reader() const { return plan_.reader(rank_); }
  bool counts() const { return plan_.counts(rank_); }
  bool counts_losses() const { return plan_.counts_losses(rank_); }

  Group& world() const { return world_; }
  // The ranks that have the same part of the model and other samples.
  Group& data() const { return group(core::kDataAxes); }
  // The ranks whose gradients are added up: those of data(), and those that have other tokens of
  // the same samples.
  Group& gradients() const { return group(core::kGradientAxes); }
  // The ranks that own the same elements of the model.
  Group& copies() const { return group(core::kCopyAxes); }
  // The ranks that together hold the model with this one, some elements more than once: those of
  // its replica, or those that share the experts with it.
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

  // One more group, of these ranks of the job, this one among them, in this order, that end() shuts
  // down too. `name` is given to no other group of any of them. Each of them calls it at once; what
  // several ranks open they open in the same order.
  Group& open(const std::vector<int>& ranks, const std::string& name);

  // Decouples the model replicas: they no longer wait for each other's collectives. Each becomes an
  // independent job whose ranks are the world; a group over several replicas keeps only its members
  // in this replica. Coordinates and the plan stay. Every rank calls it at once, with no collective
  // under way. Groups over several replicas that were obtained before then contain this rank
  // alone.
  void part_replicas();

  // Shuts the communicators down, the world's last, behind a barrier of all ranks; no collective
  // follows.
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
