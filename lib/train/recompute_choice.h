// "recompute": {"budget_mb": N}: which units run again.
#pragma once

#include "lib/train/run.h"

namespace scaletrain::train {

// Where the recipe has a budget: the units of the checkpoint that run.state came from, if that was
// of the same budget; otherwise rank 0's choice after the training set's next batch was run forward
// (lib/engine/recompute_budget.h), on all ranks alike. Keeps it in run.state. Every rank calls it.
void choose_recomputed(Run& run);

}  // namespace scaletrain::train
