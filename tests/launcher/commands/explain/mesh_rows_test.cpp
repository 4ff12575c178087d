#include "launcher/commands/explain/mesh_rows.h"

#include <doctest/doctest.h>

namespace scaletrain::launcher {
namespace {

std::string text_of(const core::MeshPlan& mesh, int ranks_per_node) {
  std::string text;
  for (const Explained& row : mesh_rows(mesh, ranks_per_node)) {
    text += row.name + " | " + row.value + " | " + row.from + "\n";
  }
  return text;
}

TEST_CASE("the axes of a mesh have their ranks and nodes, and nodes their places") {
  const core::MeshPlan mesh(1024, {.pipe = 8, .replica = {}, .shard = 4, .tensor = 8});
  CHECK(text_of(mesh, 8) ==
        "pipeline | 8 | rank 0's group: ranks 0, 128, 256, ..., 896, between nodes 0, 16, 32, "
        "..., 112\n"
        "replica | 4 | rank 0's group: ranks 0, 32, 64, 96, between nodes 0, 4, 8, 12\n"
        "shard | 4 | rank 0's group: ranks 0, 8, 16, 24, between nodes 0-3\n"
        "tensor | 8 | rank 0's group: ranks 0-7, inside node 0\n"
        "node 0 | ranks 0-7 | pipeline 0, replica 0, shard 0, tensor 0-7\n"
        "node 1 | ranks 8-15 | pipeline 0, replica 0, shard 1, tensor 0-7\n"
        "node 127 | ranks 1016-1023 | pipeline 7, replica 3, shard 3, tensor 0-7\n");
  CHECK(mesh_notes(mesh, 8).empty());
}

TEST_CASE("one node and one rank of a node have a row each") {
  CHECK(text_of(core::MeshPlan(2), 2) ==
        "replica | 2 | rank 0's group: ranks 0-1, inside node 0\n"
        "node 0 | ranks 0-1 | replica 0-1\n");
  CHECK(text_of(core::MeshPlan(2, {.pipe = 2, .replica = {}, .shard = 1, .tensor = 1}), 1) ==
        "pipeline | 2 | rank 0's group: ranks 0-1, between nodes 0-1\n"
        "node 0 | rank 0 | pipeline 0\n"
        "node 1 | rank 1 | pipeline 1\n");
}

TEST_CASE("ranks that share experts have a row behind the axes") {
  CHECK(text_of(core::MeshPlan(16, {.replica = {}, .tensor = 2, .expert = 4}), 8) ==
        "replica | 8 | rank 0's group: ranks 0, 2, 4, ..., 14, between nodes 0-1\n"
        "tensor | 2 | rank 0's group: ranks 0-1, inside node 0\n"
        "expert | 4 | rank 0's group: ranks 0, 2, 4, 6, inside node 0\n"
        "node 0 | ranks 0-7 | replica 0-3, tensor 0-1\n"
        "node 1 | ranks 8-15 | replica 4-7, tensor 0-1\n");
}

TEST_CASE("tensor groups that are not inside a node are noted") {
  CHECK(mesh_notes(core::MeshPlan(12, {.pipe = 1, .replica = {}, .shard = 1, .tensor = 4}), 6) ==
        std::vector<std::string>{"1 of 3 tensor groups has ranks on several nodes; let \"tensor\" "
                                 "divide the 6 ranks of a node"});
}

}  // namespace
}  // namespace scaletrain::launcher
