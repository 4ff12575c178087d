#include "launcher/commands/explain/device_rows.h"

#include <doctest/doctest.h>

namespace scaletrain::launcher {
namespace {

// NVLink between GPUs whose numbers are both even or both odd.
GpuPaths two_islands(std::size_t count) {
  GpuPaths paths(count, std::vector<GpuPath>(count, GpuPath::kSystem));
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = i % 2; j < count; j += 2) paths[i][j] = GpuPath::kNvLink;
  }
  return paths;
}

std::string text_of(const core::MeshPlan& mesh, int ranks_per_node, const GpuPaths& paths) {
  std::string text;
  for (const Explained& row : device_rows(mesh, ranks_per_node, paths)) {
    text += row.name + ": " + row.value + "\n";
  }
  return text;
}

core::MeshPlan mesh_of(int ranks, int pipe, int tensor) {
  return core::MeshPlan(ranks, {.pipe = pipe, .replica = {}, .shard = 1, .tensor = tensor});
}

TEST_CASE("each axis inside a node has its longest path, innermost first") {
  CHECK(text_of(mesh_of(4, 2, 2), 4, two_islands(4)) ==
        "tensor GPUs: several NUMA nodes\npipeline GPUs: NVLink\n");
  CHECK(text_of(mesh_of(8, 2, 2), 4, two_islands(4)) ==
        "tensor GPUs: several NUMA nodes\nreplica GPUs: NVLink\n");  // stages are on two nodes
  CHECK(text_of(mesh_of(4, 1, 4), 2, two_islands(2)).empty());       // a group on two nodes
  CHECK(text_of(mesh_of(4, 2, 2), 4, two_islands(3)).empty());       // fewer GPUs than ranks
  CHECK(text_of(mesh_of(4, 2, 2), 4, {}).empty());                   // not known
}

TEST_CASE("an order that keeps the innermost groups nearer is named as CUDA takes it") {
  using Notes = std::vector<std::string>;
  const GpuPaths paths = two_islands(4);
  const std::string begin =
      "the GPUs of tensor groups reach each other over several NUMA nodes; CUDA_VISIBLE_DEVICES=";
  CHECK(device_notes(mesh_of(4, 2, 2), 4, paths, std::nullopt) ==
        Notes{begin + "0,2,1,3 puts each group on NVLink"});
  CHECK(device_notes(mesh_of(4, 2, 2), 4, paths, "4, 5,6,7") ==
        Notes{begin + "4,6,5,7 puts each group on NVLink"});
  CHECK(device_notes(mesh_of(4, 1, 4), 4, paths, std::nullopt).empty());  // no order helps
  CHECK(device_notes(mesh_of(4, 2, 2), 4, {}, std::nullopt).empty());
  CHECK(device_notes(mesh_of(1, 1, 1), 1, two_islands(1), std::nullopt).empty());
}

}  // namespace
}  // namespace scaletrain::launcher
