// Logical "or" over the ranks of a group.
#pragma once

#include "lib/dist/group.h"

namespace scaletrain::train {

// True if `own` is true on any rank of the group. A blocking collective, which every rank of the
// group calls. `name`: name of the collective.
bool said_by_any(dist::Group& group, bool own, const char* name);

}  // namespace scaletrain::train
