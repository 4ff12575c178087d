// A run whose ranks share each sequence (/parallel/context).
#pragma once

#include "lib/dist/mesh.h"
#include "lib/task/task.h"

namespace scaletrain::train {

// From here on `task` prepares this rank's tokens of a batch, which attend to those of the other
// ranks of its context group; nothing to do without such an axis. Every rank calls it; the mesh
// outlives the task's examples. Throws core::RecipeError for a task without sequences.
void share_sequences(dist::Mesh& mesh, task::Task& task);

}  // namespace scaletrain::train
