#include "lib/core/plan/mesh_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "lib/core/error.h"
#include "lib/core/text/text.h"

namespace scaletrain::core {
namespace {

struct Asked {
  std::int64_t ranks = 1;  // product of the named sizes
  std::string text;        // "pipeline 2 x tensor 4"
};

Asked multiply(const MeshSizes& sizes) {
  Asked asked;
  const std::array<int, kAxes> each = {sizes.pipe, sizes.replica.value_or(1), sizes.shard,
                                       sizes.context, sizes.tensor};
  for (const Axis axis : kAllAxes) {
    const int size = each[static_cast<std::size_t>(axis)];
    if (size == 1 && !(axis == Axis::kReplica && sizes.replica)) continue;
    asked.ranks *= size;
    asked.text += fmt::format("{}{} {}", asked.text.empty() ? "" : " x ", axis_name(axis), size);
  }
  return asked;
}

void check_fit(int world_size, const MeshSizes& sizes) {
  const Asked asked = multiply(sizes);
  if (sizes.replica) {
    if (asked.ranks == world_size) return;
    throw RecipeError("/parallel",
                      fmt::format("{} {} not the {} of {}", counted(world_size, "rank"),
                                  world_size == 1 ? "is" : "are", asked.ranks, asked.text),
                      fmt::format("start {}, or leave out \"replica\", which then takes all "
                                  "ranks that are left",
                                  counted(asked.ranks, "rank")));
  }
  if (world_size % asked.ranks == 0) return;
  const std::int64_t below = world_size / asked.ranks * asked.ranks;
  const std::int64_t above = below + asked.ranks;
  throw RecipeError(
      "/parallel",
      fmt::format("{} {} not a multiple of {} = {}", counted(world_size, "rank"),
                  world_size == 1 ? "is" : "are", asked.ranks, asked.text),
      below == 0 ? fmt::format("start {} ranks, or make one of these smaller", above)
                 : fmt::format("start {} or {} ranks, or change one of these", below, above));
}

// Lists the expert-parallel sizes that fit: equal blocks of data-parallel ranks, each with whole
// sharding groups.
std::string numbers_that_fit(int readers, int shards) {
  std::string text = "1";
  for (int number = std::max(2, shards); number <= readers; ++number) {
    if (number % shards == 0 && readers % number == 0) text += fmt::format(", {}", number);
  }
  return text;
}

void check_experts(int experts, int readers, int shards) {
  if (experts == 1 || (readers % experts == 0 && experts % shards == 0)) return;
  throw RecipeError(
      "/parallel/expert",
      fmt::format("an expert-parallel size of {} does not fit {} data-parallel ranks{}", experts,
                  readers, shards > 1 ? fmt::format(" in replicas of \"shard\": {}", shards) : ""),
      fmt::format("use one of: {}", numbers_that_fit(readers, shards)));
}

}  // namespace

const char* axis_name(Axis axis) {
  switch (axis) {
    case Axis::kPipe:
      return "pipeline";
    case Axis::kReplica:
      return "replica";
    case Axis::kShard:
      return "shard";
    case Axis::kContext:
      return "context";
    case Axis::kTensor:
      return "tensor";
  }
  return "";
}

MeshPlan::MeshPlan(int world_size, const MeshSizes& asked) : world_size_(world_size), sizes_() {
  check_fit(world_size, asked);
  const int copy = asked.pipe * asked.shard * asked.context * asked.tensor;
  sizes_ = {asked.pipe, world_size / copy, asked.shard, asked.context, asked.tensor};
  check_experts(asked.expert, readers(), size(Axis::kShard));
  experts_ = asked.expert;
}

int MeshPlan::size(std::initializer_list<Axis> axes) const {
  int ranks = 1;
  for (const Axis axis : axes) ranks *= size(axis);
  return ranks;
}

int MeshPlan::stride(Axis axis) const {
  int ranks = 1;
  for (const Axis inner : kAllAxes) {
    if (inner > axis) ranks *= size(inner);
  }
  return ranks;
}

int MeshPlan::coordinate(int rank, Axis axis) const { return rank / stride(axis) % size(axis); }

int MeshPlan::reader(int rank) const {
  return coordinate(rank, Axis::kReplica) * size(Axis::kShard) + coordinate(rank, Axis::kShard);
}

std::vector<int> MeshPlan::group(int rank, std::initializer_list<Axis> axes) const {
  int first = rank;
  for (const Axis axis : axes) first -= coordinate(rank, axis) * stride(axis);
  std::vector<int> ranks{first};
  // Axes from the outermost one: each rank so far is followed by its neighbours along the axis.
  for (const Axis axis : kAllAxes) {
    bool varies = false;
    for (const Axis one : axes) varies = varies || one == axis;
    if (!varies) continue;
    std::vector<int> wider;
    wider.reserve(ranks.size() * static_cast<std::size_t>(size(axis)));
    for (const int before : ranks) {
      for (int place = 0; place < size(axis); ++place) {
        wider.push_back(before + place * stride(axis));
      }
    }
    ranks = std::move(wider);
  }
  return ranks;
}

int MeshPlan::place(int rank) const {
  const std::vector<int> ranks = replica_group(rank);
  return static_cast<int>(std::ranges::find(ranks, rank) - ranks.begin());
}

std::vector<int> MeshPlan::link(int rank, Axis axis) const {
  const std::vector<int> ranks = group(rank, {axis});
  return {rank, ranks[static_cast<std::size_t>(coordinate(rank, axis) + 1) % ranks.size()]};
}

std::vector<int> MeshPlan::in_copy(int rank, std::initializer_list<Axis> axes) const {
  std::vector<int> ranks = group(rank, axes);
  std::erase_if(ranks, [&](int other) { return replica(other) != replica(rank); });
  return ranks;
}

std::vector<int> MeshPlan::same_place(int rank, std::initializer_list<Axis> axes) const {
  std::vector<int> ranks = group(rank, axes);
  const int readers = readers_of_copy();
  std::erase_if(ranks,
                [&](int other) { return reader(other) % readers != reader(rank) % readers; });
  return ranks;
}

std::vector<int> MeshPlan::model_group(int rank) const {
  return in_copy(rank, {Axis::kPipe, Axis::kReplica, Axis::kShard, Axis::kTensor});
}

std::vector<int> MeshPlan::expert_group(int rank) const { return in_copy(rank, kDataAxes); }

std::vector<int> MeshPlan::same_experts(int rank) const { return same_place(rank, kGradientAxes); }

}  // namespace scaletrain::core
