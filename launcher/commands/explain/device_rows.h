// How near the GPUs of a mesh's neighbouring ranks are on this node.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/commands/explain/explanation.h"
#include "launcher/platform/gpu_paths.h"
#include "lib/core/mesh_plan.h"

namespace scaletrain::launcher {

// Of each axis that has several ranks, innermost first, while its groups are inside a node: the
// longest path between two GPUs of a group, where local rank number i has GPU number i. Nothing
// where `paths` are not those of `ranks_per_node` GPUs at least.
std::vector<Explained> device_rows(const core::MeshPlan& mesh, int ranks_per_node,
                                   const GpuPaths& paths);

// The order of GPUs that keeps the groups of the innermost axis nearer, as CUDA_VISIBLE_DEVICES
// (`visible`: as it is set) would have it.
std::vector<std::string> device_notes(const core::MeshPlan& mesh, int ranks_per_node,
                                      const GpuPaths& paths,
                                      const std::optional<std::string>& visible);

}  // namespace scaletrain::launcher
