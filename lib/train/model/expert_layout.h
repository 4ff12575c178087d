// A model whose experts lie on several ranks: built so, and run so.
#pragma once

#include "lib/dist/mesh.h"
#include "lib/nn/model.h"
#include "lib/parallel/expert_parallel.h"

namespace scaletrain::train {

// Returns the expert-parallel rank of each expert parameter of each layer; `ranks` ranks share the
// experts evenly.
parallel::ExpertPlaces places_of_experts(const nn::Model& model, int ranks);

// Lets each layer of the model that has experts run this rank's alone, and returns where the
// parameters of each lie. The mesh has experts, and outlives the model. Throws core::RecipeError
// ("/parallel/expert: ...") where the model has none, or a number that its ranks cannot share.
parallel::ExpertPlaces divide_experts(nn::Model& model, const dist::Mesh& mesh);

// Lets such layers see the tokens of all ranks that share sequences; nothing to do where none do.
void share_tokens(nn::Model& model, const dist::Mesh& mesh);

// Dummy input for a rank that ran out of batches, so that collectives still match: as few tokens as
// the layout can divide, of any value.
at::Tensor idle_tokens(const dist::Mesh& mesh);

}  // namespace scaletrain::train
