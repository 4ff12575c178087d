// "recompute": {"budget_mb": N}: chooses the units for activation checkpointing.
#pragma once

#include "lib/train/run/run.h"

namespace scaletrain::train {

// Chooses the units for activation checkpointing under the recipe's budget: those in run.state if
// it was saved with the same budget; otherwise rank 0's choice for all ranks, after a forward pass
// of the training set's next batch (lib/engine/recompute_budget.h). Keeps it in run.state. Every
// rank calls it.
void choose_recomputed(Run& run);

}  // namespace scaletrain::train
