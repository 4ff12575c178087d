#include "launcher/commands/explain/device_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "launcher/platform/gpus.h"

namespace scaletrain::launcher {
namespace {

constexpr std::array kInnermostFirst = {core::Axis::kTensor, core::Axis::kContext,
                                        core::Axis::kShard, core::Axis::kReplica,
                                        core::Axis::kPipe};

bool knows_all(const GpuPaths& paths, int ranks_per_node) {
  return ranks_per_node > 1 && static_cast<int>(paths.size()) >= ranks_per_node;
}

// Returns the groups along `axis` of the ranks of node 0, concatenated; empty if a group is not
// inside the node.
std::vector<int> groups_inside(const core::MeshPlan& mesh, core::Axis axis, int ranks_per_node) {
  std::vector<int> ranks;
  for (int rank = 0; rank < ranks_per_node; ++rank) {
    if (mesh.coordinate(rank, axis) != 0) continue;
    const std::vector<int> group = mesh.group(rank, {axis});
    if (group.back() >= ranks_per_node) return {};
    ranks.insert(ranks.end(), group.begin(), group.end());
  }
  return static_cast<int>(ranks.size()) == ranks_per_node ? ranks : std::vector<int>();
}

}  // namespace

std::vector<Explained> device_rows(const core::MeshPlan& mesh, int ranks_per_node,
                                   const GpuPaths& paths) {
  std::vector<Explained> rows;
  if (!knows_all(paths, ranks_per_node)) return rows;
  for (const core::Axis axis : kInnermostFirst) {
    if (mesh.size(axis) == 1) continue;
    const std::vector<int> ranks = groups_inside(mesh, axis, ranks_per_node);
    if (ranks.empty()) break;
    const GpuPath longest = longest_path(paths, ranks, mesh.size(axis));
    rows.push_back({.name = fmt::format("{} GPUs", core::axis_name(axis)),
                    .value = path_text(longest),
                    .from = "the longest path inside a group of this node"});
  }
  return rows;
}

std::vector<std::string> device_notes(const core::MeshPlan& mesh, int ranks_per_node,
                                      const GpuPaths& paths,
                                      const std::optional<std::string>& visible) {
  if (!knows_all(paths, ranks_per_node)) return {};
  const auto* const axis =
      std::ranges::find_if(kInnermostFirst, [&](core::Axis one) { return mesh.size(one) > 1; });
  if (axis == kInnermostFirst.end()) return {};
  const std::vector<int> ranks = groups_inside(mesh, *axis, ranks_per_node);
  if (ranks.empty()) return {};
  const int size = mesh.size(*axis);
  const auto order = nearer_order(paths, ranks_per_node, size);
  if (!order) return {};
  const std::vector<std::string> named = device_entries(visible.value_or(""));
  std::vector<std::string> entries;
  for (const int gpu : *order) {
    entries.push_back(visible ? named[static_cast<std::size_t>(gpu)] : std::to_string(gpu));
  }
  return {fmt::format(
      "the GPUs of {} groups reach each other over {}; CUDA_VISIBLE_DEVICES={} puts each group on "
      "{}",
      core::axis_name(*axis), path_text(longest_path(paths, ranks, size)), fmt::join(entries, ","),
      path_text(longest_path(paths, *order, size)))};
}

}  // namespace scaletrain::launcher
