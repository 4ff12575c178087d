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

#include "lib/core/mesh_plan.h"
#include "lib/dist/group.h"

namespace scaletrain::dist {

class Mesh {
 public:
  // Every rank of `world`, which must outlive the mesh, calls it at once with the same plan of as
  // many ranks. Throws what Group does.
  Mesh(Group& world, const core::MeshPlan& plan);

  const core::MeshPlan& plan() const { return plan_; }
  int size(core::Axis axis) const { return plan_.size(axis); }
  int rank() const { return rank_; }  // of the job
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
  // Those of gradients() and of copies() that train the same copy of the model; the first where
  // nothing is sharded. And of each copy the rank at this one's place that has other samples.
  Group& gradients_of_model() const { return find(in_copy(core::kGradientAxes)); }
  Group& copies_in_model() const { return find(in_copy(core::kCopyAxes)); }
  Group& replicas() const { return find(plan_.same_place(rank_, core::kDataAxes)); }
  // The ranks that hold the experts together with this one, and those that hold the same: groups of
  // their own, so that rows of tokens do not wait behind gradients. Of a plan with experts.
  Group& experts() const { return *experts_; }
  Group& same_experts() const { return *same_experts_; }
  Group& group(core::Axis axis) const { return group({axis}); }

  // One more group, of these ranks of the job, this one among them, in this order, that end() shuts
  // down too. `name` is given to no other group of any of them. Each of them calls it at once; what
  // several ranks open they open in the same order.
  Group& open(const std::vector<int>& ranks, const std::string& name);

  // From here on the replicas, copies of the model, wait for no collective of each other: each is a
  // job of its own, whose ranks are the world, and of groups that are views of several replicas the
  // members of this one are left. Coordinates and the plan stay. Every rank calls it at once, with
  // no collective under way; groups of several replicas that were asked for before are of this rank
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
  std::map<std::vector<int>, std::unique_ptr<Group>> groups_;  // by their ranks; not the world's
  std::vector<std::unique_ptr<Group>> more_;                   // by open()
  Group *experts_ = nullptr, *same_experts_ = nullptr;         // of those
};

}  // namespace scaletrain::dist
