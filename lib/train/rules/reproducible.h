// Conditions under which a resumed run continues bit for bit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/checkpoint/checkpoint.h"
#include "lib/core/plan/mesh_plan.h"
#include "lib/dist/group.h"

namespace scaletrain::train {

// Returns the sizes of a mesh's axes as in state.json; {} if all ranks are replicas.
std::vector<std::int64_t> mesh_numbers(const core::MeshPlan& plan);

// Writes this process's ranks, threads, CPU capability, LibTorch and device into `state`.
void describe_process(checkpoint::TrainState& state, const dist::Group& group);

// Returns the differences, such as "4 ranks, were 2"; empty: the resume is bit for bit (on a GPU
// only with deterministic kernels).
std::vector<std::string> differences(const checkpoint::TrainState& was,
                                     const checkpoint::TrainState& now);

}  // namespace scaletrain::train
