// All-to-all of tokens between the ranks that hold the experts of a mixture.
#pragma once

#include "lib/dist/group.h"
#include "lib/units/expert_cut.h"

namespace scaletrain::parallel {

// Each rank of `experts` holds as many experts; the group must outlive all uses of the result.
units::ExpertCut expert_cut(dist::Group& experts);

}  // namespace scaletrain::parallel
