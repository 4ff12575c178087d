// Positions of the ranks in a recipe's device mesh.
#pragma once

#include <string>
#include <vector>

#include "launcher/commands/explain/explanation.h"
#include "lib/core/plan/mesh_plan.h"

namespace scaletrain::launcher {

// Returns a row for each axis with several ranks, outermost first: its size, and the ranks and
// nodes of rank 0's group; a row for rank 0's expert-parallel group; then the coordinates of the
// first and last nodes.
std::vector<Explained> mesh_rows(const core::MeshPlan& mesh, int ranks_per_node);

// Warnings about the mesh: groups with the most communication that span several nodes.
std::vector<std::string> mesh_notes(const core::MeshPlan& mesh, int ranks_per_node);

}  // namespace scaletrain::launcher
