// What the units of a model see of the ranks beside this one.
#pragma once

#include "lib/dist/group.h"
#include "lib/units/unit.h"

namespace scaletrain::engine {

// `context` of a batch for a training pass on one of the ranks of `data`, which have other samples
// of the same step and outlive it.
units::Context training_context(units::Context context, dist::Group& data);

}  // namespace scaletrain::engine
