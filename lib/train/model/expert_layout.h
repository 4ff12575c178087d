// Expert parallelism of a model.
#pragma once

#include "lib/dist/mesh.h"
#include "lib/nn/model.h"
#include "lib/parallel/expert_parallel.h"

namespace scaletrain::train {

// Returns the expert-parallel rank of each expert parameter of each layer; `ranks` ranks share the
// experts evenly.
parallel::ExpertPlaces places_of_experts(const nn::Model& model, int ranks);

// Makes each layer with experts run only this rank's experts, and returns the places of their
// parameters. The mesh must have experts and outlive the model. Throws core::RecipeError
// ("/parallel/expert: ...") if the model has no experts, or a number that the ranks cannot divide.
parallel::ExpertPlaces divide_experts(nn::Model& model, const dist::Mesh& mesh);

// Makes such layers use the tokens of all context-parallel ranks; no-op without context
// parallelism.
void share_tokens(nn::Model& model, const dist::Mesh& mesh);

// Dummy input for a rank that ran out of batches, so that collectives still match: as few tokens as
// the layout can divide, of any value.
at::Tensor idle_tokens(const dist::Mesh& mesh);

}  // namespace scaletrain::train
