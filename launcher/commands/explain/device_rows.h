// Shows how the GPUs of neighbouring ranks of a device mesh are connected on this node.
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

// Suggests a better order of GPUs for the groups of the innermost axis, as a value for
// CUDA_VISIBLE_DEVICES (`visible`: its present value).
std::vector<std::string> device_notes(const core::MeshPlan& mesh, int ranks_per_node,
                                      const GpuPaths& paths,
                                      const std::optional<std::string>& visible);

}  // namespace scaletrain::launcher
