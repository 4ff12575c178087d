// How the ranks of a job are laid out: five axes, outermost first, so that ranks that exchange most
// stand closest together.
// Rank = (((pipe x replicas + replica) x shards + shard) x contexts + context) x tensors + tensor.
//
// A data coordinate is a place along replica and shard together: ranks with the same one train on
// the same samples, each with another part of the model, or along context with other tokens of
// them. Numbers only: the launcher plans with it.
//
// Experts take no ranks of their own: neighbouring data coordinates, so many of them, hold the
// experts of a mixture together. Ranks that lie there along other axes do it each with its fellows
// of the same place: of its stage, with its part of each expert, and with its tokens.
//
// A copy of the model is a block of neighbouring data coordinates: those that hold the experts
// together, otherwise those of a shard group. With the other axes it is one of the replicas that
// train alone: without experts those along kReplica.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <vector>

namespace scaletrain::core {

enum class Axis { kPipe, kReplica, kShard, kContext, kTensor };
inline constexpr std::size_t kAxes = 5;

// Returns the axis's name in a recipe: "pipeline", "replica", "shard", "context", "tensor".
const char* axis_name(Axis axis);

// The axes of the data coordinate.
inline constexpr std::initializer_list<Axis> kDataAxes = {Axis::kReplica, Axis::kShard};
// The axes along which ranks have the same part of the model and train it on other tokens.
inline constexpr std::initializer_list<Axis> kGradientAxes = {Axis::kReplica, Axis::kShard,
                                                              Axis::kContext};
// The axes along which ranks own the same elements of the model.
inline constexpr std::initializer_list<Axis> kCopyAxes = {Axis::kReplica, Axis::kContext};
// The axes of one replica, whose ranks hold the model together.
inline constexpr std::initializer_list<Axis> kModelAxes = {Axis::kPipe, Axis::kShard,
                                                           Axis::kTensor};
inline constexpr std::initializer_list<Axis> kAllAxes = {Axis::kPipe, Axis::kReplica, Axis::kShard,
                                                         Axis::kContext, Axis::kTensor};

// Mesh sizes that a recipe asks for, each at least 1; without `replica` the replicas take all ranks
// that are left.
struct MeshSizes {
  int pipe = 1;
  std::optional<int> replica;
  int shard = 1;
  int context = 1;
  int tensor = 1;
  int expert = 1;  // data coordinates that hold the experts together
};

class MeshPlan {
 public:
  // Throws core::RecipeError ("/parallel: ...") where `world_size` ranks, at least 1, cannot be
  // laid out so.
  explicit MeshPlan(int world_size, const MeshSizes& asked = {});

  int world_size() const { return world_size_; }
  int size(Axis axis) const { return sizes_[static_cast<std::size_t>(axis)]; }
  // Returns the product of the sizes of `axes`.
  int size(std::initializer_list<Axis> axes) const;
  // Data coordinates: how many different batches make a micro-step.
  int readers() const { return size(kDataAxes); }
  // Expert-parallel size: a multiple of the size along kShard, or 1.
  int experts() const { return experts_; }
  // Data coordinates of a copy of the model.
  int readers_of_copy() const { return experts_ > 1 ? experts_ : size(Axis::kShard); }
  // Copies of the model that train on different samples.
  int model_copies() const { return readers() / readers_of_copy(); }

  // Place of `rank` along an axis, from 0.
  int coordinate(int rank, Axis axis) const;
  // Its data coordinate, from 0 to readers() - 1.
  int reader(int rank) const;

  // The ranks that differ from `rank` along these axes alone, itself among them, in ascending
  // order.
  std::vector<int> group(int rank, std::initializer_list<Axis> axes) const;

  // Decoupled replicas: the replica of `rank`, from 0 to model_copies() - 1, its ranks, in
  // ascending order, and its place among them, from 0. Ranks at the same place in their replicas
  // own the same of the model.
  int replica(int rank) const { return reader(rank) / readers_of_copy(); }
  std::vector<int> replica_group(int rank) const { return in_copy(rank, kAllAxes); }
  int place(int rank) const;

  // `rank` and the next one along `axis`, behind its last the first: the ends of what it sends to.
  std::vector<int> link(int rank, Axis axis) const;

  // The ranks that hold the whole model together, `rank` among them, in ascending order: those of a
  // copy that have the same tokens.
  std::vector<int> model_group(int rank) const;
  // The ranks that hold the experts together with `rank`, and those that hold the same ones.
  std::vector<int> expert_group(int rank) const;
  std::vector<int> same_experts(int rank) const;
  // The ranks of group(rank, axes) that belong to the same copy as `rank`, and those that stand at
  // its place in theirs.
  std::vector<int> in_copy(int rank, std::initializer_list<Axis> axes) const;
  std::vector<int> same_place(int rank, std::initializer_list<Axis> axes) const;

  // True if `rank` stands for the ranks that have the same samples: the first of a context and a
  // tensor group does. In a pipeline each stage has one.
  bool reads(int rank) const {
    return coordinate(rank, Axis::kContext) == 0 && coordinate(rank, Axis::kTensor) == 0;
  }
  // True if `rank` is the one that counts the samples of its data-parallel rank.
  bool counts(int rank) const { return reads(rank) && coordinate(rank, Axis::kPipe) == 0; }
  // True if `rank` is one that counts the losses of its data-parallel rank: in a pipeline the last
  // stage has them, and each rank of a context group those of its own tokens.
  bool counts_losses(int rank) const {
    return coordinate(rank, Axis::kTensor) == 0 &&
           coordinate(rank, Axis::kPipe) == size(Axis::kPipe) - 1;
  }
  // True if `rank` writes its shards of a checkpoint: the first of the ranks with the same shards.
  bool writes(int rank) const {
    return replica(rank) == 0 && coordinate(rank, Axis::kContext) == 0;
  }

 private:
  int stride(Axis axis) const;  // between neighbours along the axis

  int world_size_;
  std::array<int, kAxes> sizes_;
  int experts_ = 1;
};

}  // namespace scaletrain::core
