// Context parallelism of a run (/parallel/context).
#pragma once

#include <optional>

#include "lib/dist/mesh.h"
#include "lib/task/task.h"
#include "lib/units/token_cut.h"

namespace scaletrain::train {

// Returns the split of sequences over the context-parallel group, which outlives it; nullopt
// without context parallelism. Every rank calls it.
std::optional<units::TokenCut> open_token_cut(dist::Mesh& mesh);

// Makes `task` prepare only this rank's tokens of a batch, which attend to those of the other ranks
// of its context-parallel group; does nothing without context parallelism. Every rank calls it; the
// mesh outlives the task's examples. Throws core::RecipeError for a task without sequences.
void share_sequences(dist::Mesh& mesh, task::Task& task);

// Returns a rank's tokens, by `cut`, of a batch of full sequences, each one document.
task::Example own_tokens(const task::Example& whole, const units::TokenCut& cut);

}  // namespace scaletrain::train
