// A question that the ranks of a group answer together.
#pragma once

#include "lib/dist/group.h"

namespace scaletrain::train {

// Whether any rank of the group says so; all of them ask alike, and wait for each other. `name` is
// that of the collective.
bool said_by_any(dist::Group& group, bool own, const char* name);

}  // namespace scaletrain::train
