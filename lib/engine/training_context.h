// What the units of a model see of the ranks beside this one.
#pragma once

#include <functional>

#include "lib/dist/mesh.h"
#include "lib/units/unit.h"

namespace scaletrain::engine {

// `context` of a batch for a training pass on one of the ranks of `data`, which have other samples
// of the same step and outlive it.
units::Context training_context(units::Context context, dist::Group& data);

// Adds up what the ranks that have other tokens of a step have counted, and of a pipeline the
// stages, which have other units; empty where there is one such rank. The mesh outlives it.
std::function<void(const at::Tensor& values)> sum_of_step(const dist::Mesh& mesh);

}  // namespace scaletrain::engine
