// Measures a few steps of a planned recipe on this machine, with one node's ranks.
#pragma once

#include "launcher/commands/plan/prediction.h"

namespace scaletrain::launcher {

// Runs `scaletrain-worker bench` for memory and for speed, with `target.nproc` ranks on the
// recipe's own data. Throws core::Error if the worker fails or a signal stops it.
ProbedStep probe_step(recipe::Recipe recipe, const PlanTarget& target);

}  // namespace scaletrain::launcher
