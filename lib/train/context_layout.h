// A run whose ranks share each sequence (/parallel/context).
#pragma once

#include <optional>

#include "lib/dist/mesh.h"
#include "lib/task/task.h"
#include "lib/units/token_cut.h"

namespace scaletrain::train {

// What cuts sequences over the context group, which outlives it; nullopt without such an axis.
// Every rank calls it.
std::optional<units::TokenCut> open_token_cut(dist::Mesh& mesh);

// From here on `task` prepares this rank's tokens of a batch, which attend to those of the other
// ranks of its context group; nothing to do without such an axis. Every rank calls it; the mesh
// outlives the task's examples. Throws core::RecipeError for a task without sequences.
void share_sequences(dist::Mesh& mesh, task::Task& task);

// Of a batch of whole sequences, each one document, what a rank has by `cut`.
task::Example own_tokens(const task::Example& whole, const units::TokenCut& cut);

}  // namespace scaletrain::train
