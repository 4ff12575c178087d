#include "lib/core/mesh_plan.h"

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "lib/core/error.h"

namespace scaletrain::core {
namespace {

constexpr std::array<Axis, kAxes> kAllAxes = {Axis::kPipe, Axis::kReplica, Axis::kShard,
                                              Axis::kContext, Axis::kTensor};

struct Asked {
  std::int64_t ranks = 1;  // of what was named
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
    throw RecipeError(
        "/parallel",
        fmt::format("{} ranks are not the {} of {}", world_size, asked.ranks, asked.text),
        fmt::format("start {} ranks, or leave out \"replica\", which then takes all "
                    "ranks that are left",
                    asked.ranks));
  }
  if (world_size % asked.ranks == 0) return;
  const std::int64_t below = world_size / asked.ranks * asked.ranks;
  const std::int64_t above = below + asked.ranks;
  throw RecipeError(
      "/parallel",
      fmt::format("{} ranks are not a multiple of {} = {}", world_size, asked.ranks, asked.text),
      below == 0 ? fmt::format("start {} ranks, or make one of these smaller", above)
                 : fmt::format("start {} or {} ranks, or change one of these", below, above));
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
  // From the outermost axis inwards, each rank so far is followed by those beside it.
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

}  // namespace scaletrain::core
