// Logical "or" over the ranks of a group.
#pragma once

#include "lib/dist/group.h"

namespace scaletrain::dist {

// True if `own` is true on any rank of the group. A blocking collective, which every rank of the
// group calls. `name`: name of the collective.
bool any_rank(Group& group, bool own, const char* name);

}  // namespace scaletrain::dist
