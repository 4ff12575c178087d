// How near the GPUs of a mesh's neighbouring ranks are on this node.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/commands/explain/explanation.h"
#include "launcher/platform/gpu_paths.h"
#include "lib/core/plan/mesh_plan.h"

namespace scaletrain::launcher {

// Longest path between two GPUs of a group, for each mesh axis with several ranks whose groups lie
// inside a node, innermost first; local rank i has GPU i. Empty if `paths` cover fewer than
// `ranks_per_node` GPUs.
std::vector<Explained> device_rows(const core::MeshPlan& mesh, int ranks_per_node,
                                   const GpuPaths& paths);

// The order of GPUs that keeps the groups of the innermost axis nearer, as CUDA_VISIBLE_DEVICES
// (`visible`: as it is set) would have it.
std::vector<std::string> device_notes(const core::MeshPlan& mesh, int ranks_per_node,
                                      const GpuPaths& paths,
                                      const std::optional<std::string>& visible);

}  // namespace scaletrain::launcher
