// Collectives that a model's units may use during training.
#pragma once

#include <functional>

#include "lib/dist/mesh.h"
#include "lib/units/unit.h"

namespace scaletrain::engine {

// Adds to `context` a sum over the ranks of `data`, which train on other samples of the step.
// `data` must outlive the result.
units::Context training_context(units::Context context, dist::Group& data);

// Returns an all-reduce that sums a step's counters over ranks with different tokens and over
// pipeline stages; empty if this rank is alone. `mesh` must outlive it.
std::function<void(const at::Tensor& values)> sum_of_step(const dist::Mesh& mesh);

}  // namespace scaletrain::engine
