// Positions of the ranks in a recipe's device mesh.
#pragma once

#include <string>
#include <vector>

#include "launcher/commands/explain/explanation.h"
#include "lib/core/plan/mesh_plan.h"

namespace scaletrain::launcher {

// An axis that has several ranks, outermost first: how many, and which ranks and nodes rank 0's
// group along it has; those that share experts with rank 0; then the first nodes and the last, with
// their places on each axis.
std::vector<Explained> mesh_rows(const core::MeshPlan& mesh, int ranks_per_node);

// Warnings about the mesh: groups with the most communication that span several nodes.
std::vector<std::string> mesh_notes(const core::MeshPlan& mesh, int ranks_per_node);

}  // namespace scaletrain::launcher
