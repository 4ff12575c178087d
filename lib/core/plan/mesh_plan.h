// Device mesh: lays out the ranks of a job along five axes, outermost first, so that ranks that
// communicate most are neighbours.
//
// Rank = (((pipe x replicas + replica) x shards + shard) x contexts + context) x tensors + tensor.
//
// A rank's data-parallel rank (dp_rank) combines its places on the replica and shard axes. Ranks
// with the same dp_rank train on the same samples, each with another part of the model or, along
// the context axis, with other tokens. This header has numbers only, so the launcher can plan with
// it.
//
// Expert parallelism adds no axis: neighbouring data-parallel ranks divide the experts of a mixture
// among themselves. Ranks at other places of the pipeline, tensor and context axes form other
// expert groups.
//
// A model copy is a block of neighbouring data-parallel ranks: an expert-parallel group, or without
// experts a sharding group. With decoupled replicas each model copy, with its ranks along the other
// axes, is one replica; without experts these are the replicas along kReplica.
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

// Axes that a data-parallel rank combines.
inline constexpr std::initializer_list<Axis> kDataAxes = {Axis::kReplica, Axis::kShard};
// Axes along which ranks hold the same part of the model and train it on different tokens.
inline constexpr std::initializer_list<Axis> kGradientAxes = {Axis::kReplica, Axis::kShard,
                                                              Axis::kContext};
// Axes along which ranks own the same elements of the model.
inline constexpr std::initializer_list<Axis> kCopyAxes = {Axis::kReplica, Axis::kContext};
// Axes of one replica, whose ranks hold the model together.
inline constexpr std::initializer_list<Axis> kModelAxes = {Axis::kPipe, Axis::kShard,
                                                           Axis::kTensor};
inline constexpr std::initializer_list<Axis> kAllAxes = {Axis::kPipe, Axis::kReplica, Axis::kShard,
                                                         Axis::kContext, Axis::kTensor};

// Mesh sizes of a recipe, each at least 1. Without `replica`, the remaining ranks become replicas.
struct MeshSizes {
  int pipe = 1;
  std::optional<int> replica;
  int shard = 1;
  int context = 1;
  int tensor = 1;
  int expert = 1;  // number of data-parallel ranks that share the experts
};

class MeshPlan {
 public:
  // Throws core::RecipeError ("/parallel: ...") if `world_size` ranks (at least 1) cannot be laid
  // out this way.
  explicit MeshPlan(int world_size, const MeshSizes& asked = {});

  int world_size() const { return world_size_; }
  int size(Axis axis) const { return sizes_[static_cast<std::size_t>(axis)]; }
  // Returns the product of the sizes of `axes`.
  int size(std::initializer_list<Axis> axes) const;
  // Data-parallel size (dp_size): the number of different batches in a micro-step.
  int readers() const { return size(kDataAxes); }
  // Expert-parallel size: a multiple of the size along kShard, or 1.
  int experts() const { return experts_; }
  // Number of data-parallel ranks of a model copy.
  int readers_of_copy() const { return experts_ > 1 ? experts_ : size(Axis::kShard); }
  // Number of copies of the model that train on different samples.
  int model_copies() const { return readers() / readers_of_copy(); }

  // Returns the coordinate of `rank` along an axis, from 0.
  int coordinate(int rank, Axis axis) const;
  // Returns the data-parallel rank (dp_rank) of `rank`, from 0 to readers() - 1.
  int reader(int rank) const;

  // Returns the ranks that differ from `rank` only along these axes, including itself, in ascending
  // order.
  std::vector<int> group(int rank, std::initializer_list<Axis> axes) const;

  // For decoupled replicas: the replica of `rank` (0 to model_copies() - 1), its ranks in ascending
  // order, and the place of `rank` among them. Ranks at the same place of their replicas own the
  // same elements.
  int replica(int rank) const { return reader(rank) / readers_of_copy(); }
  std::vector<int> replica_group(int rank) const { return in_copy(rank, kAllAxes); }
  int place(int rank) const;

  // Returns `rank` and the next rank along `axis` (the first one after the last): the two ends of a
  // connection.
  std::vector<int> link(int rank, Axis axis) const;

  // Returns the ranks that hold the whole model together, including `rank`, in ascending order:
  // those of a copy that have the same tokens.
  std::vector<int> model_group(int rank) const;
  // Returns the expert-parallel group of `rank`, and the ranks that hold the same experts.
  std::vector<int> expert_group(int rank) const;
  std::vector<int> same_experts(int rank) const;
  // Returns the ranks of group(rank, axes) in the same copy of the model as `rank`, and the ranks
  // at the same place in the other copies.
  std::vector<int> in_copy(int rank, std::initializer_list<Axis> axes) const;
  std::vector<int> same_place(int rank, std::initializer_list<Axis> axes) const;

  // True if `rank` reads the samples that a context and a tensor group share: its first rank does.
  // In a pipeline, one rank of each stage does.
  bool reads(int rank) const {
    return coordinate(rank, Axis::kContext) == 0 && coordinate(rank, Axis::kTensor) == 0;
  }
  // True if `rank` is the one that counts the samples of its data-parallel rank.
  bool counts(int rank) const { return reads(rank) && coordinate(rank, Axis::kPipe) == 0; }
  // True if `rank` counts losses of its data-parallel rank: in a pipeline, ranks of the last stage;
  // in a context group, each rank for its own tokens.
  bool counts_losses(int rank) const {
    return coordinate(rank, Axis::kTensor) == 0 &&
           coordinate(rank, Axis::kPipe) == size(Axis::kPipe) - 1;
  }
  // True if `rank` writes its shards to a checkpoint: the first of the ranks with the same shards
  // does.
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
