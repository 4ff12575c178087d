// Finding of one rank, made known to all.
#pragma once

#include <string>

#include "lib/dist/group.h"

namespace scaletrain::train {

// Returns on every rank the text of the lowest rank whose `own` is not empty; "" if all are.
// Collective; two collectives if there is a finding, otherwise one. `name`: name of the
// collectives.
std::string first_finding(dist::Group& group, const std::string& own, const char* name);

}  // namespace scaletrain::train
