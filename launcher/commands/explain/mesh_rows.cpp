#include "launcher/commands/explain/mesh_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "lib/core/text/text.h"

namespace scaletrain::launcher {
namespace {

constexpr std::array kOutermostFirst = {core::Axis::kPipe, core::Axis::kReplica, core::Axis::kShard,
                                        core::Axis::kContext, core::Axis::kTensor};
constexpr std::size_t kShown = 4;  // shown numbers of a group

// Returns "0, 8, 16, ..., 1016", or "0-7" for consecutive numbers.
std::string numbers(const std::vector<int>& all) {
  const bool is_range = all.back() - all.front() == static_cast<int>(all.size()) - 1;
  if (is_range && all.size() > 1) return fmt::format("{}-{}", all.front(), all.back());
  std::string text;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all.size() > kShown && i + 1 > kShown - 1 && i + 1 < all.size()) {
      if (i + 1 == kShown) text += ", ...";
      continue;
    }
    text += fmt::format("{}{}", i == 0 ? "" : ", ", all[i]);
  }
  return text;
}

std::vector<int> nodes_of(const std::vector<int>& ranks, int ranks_per_node) {
  std::set<int> nodes;
  for (const int rank : ranks) nodes.insert(rank / ranks_per_node);
  return {nodes.begin(), nodes.end()};
}

Explained node_row(const core::MeshPlan& mesh, int node, int ranks_per_node) {
  const int first = node * ranks_per_node, last = first + ranks_per_node - 1;
  std::string places;
  for (const core::Axis axis : kOutermostFirst) {
    if (mesh.size(axis) == 1) continue;
    std::set<int> coordinates;
    for (int rank = first; rank <= last; ++rank) coordinates.insert(mesh.coordinate(rank, axis));
    places += fmt::format("{}{} {}", places.empty() ? "" : ", ", core::axis_name(axis),
                          numbers({coordinates.begin(), coordinates.end()}));
  }
  return {.name = fmt::format("node {}", node),
          .value = first == last ? fmt::format("rank {}", first)
                                 : fmt::format("ranks {}-{}", first, last),
          .from = places};
}

}  // namespace

std::vector<Explained> mesh_rows(const core::MeshPlan& mesh, int ranks_per_node) {
  std::vector<Explained> rows;
  const auto add = [&](const char* name, const std::vector<int>& ranks) {
    const std::vector<int> nodes = nodes_of(ranks, ranks_per_node);
    rows.push_back(
        {.name = name,
         .value = std::to_string(ranks.size()),
         .from = fmt::format("rank 0's group: ranks {}, {} {}", numbers(ranks),
                             nodes.size() == 1 ? "inside node" : "between nodes", numbers(nodes))});
  };
  for (const core::Axis axis : kOutermostFirst) {
    if (mesh.size(axis) > 1) add(core::axis_name(axis), mesh.group(0, {axis}));
  }
  if (mesh.experts() > 1) add("expert", mesh.expert_group(0));
  const int nodes = mesh.world_size() / ranks_per_node;
  for (const int node : std::set<int>{0, std::min(1, nodes - 1), nodes - 1}) {
    rows.push_back(node_row(mesh, node, ranks_per_node));
  }
  return rows;
}

std::vector<std::string> mesh_notes(const core::MeshPlan& mesh, int ranks_per_node) {
  int apart = 0;
  for (int rank = 0; rank < mesh.world_size(); rank += mesh.size(core::Axis::kTensor)) {
    const int last = rank + mesh.size(core::Axis::kTensor) - 1;
    if (rank / ranks_per_node != last / ranks_per_node) ++apart;
  }
  if (apart == 0) return {};
  return {fmt::format(
      "{} of {} {} ranks on several nodes; let \"tensor\" divide the {} of a node", apart,
      core::counted(mesh.world_size() / mesh.size(core::Axis::kTensor), "tensor group"),
      apart == 1 ? "has" : "have", core::counted(ranks_per_node, "rank"))};
}

}  // namespace scaletrain::launcher
