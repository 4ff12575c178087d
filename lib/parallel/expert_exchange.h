// Tokens on their way to the ranks that have their experts.
#pragma once

#include "lib/dist/group.h"
#include "lib/units/expert_cut.h"

namespace scaletrain::parallel {

// The ranks of `experts` each have as many; the group outlives it, and what was run with it.
units::ExpertCut expert_cut(dist::Group& experts);

}  // namespace scaletrain::parallel
