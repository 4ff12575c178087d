// A model whose experts lie on several ranks: built so, and run so.
#pragma once

#include "lib/dist/mesh.h"
#include "lib/nn/model.h"
#include "lib/parallel/expert_parallel.h"

namespace scaletrain::train {

// Where the parameters of the experts of each layer lie, of a model on so many ranks that share
// them evenly.
parallel::ExpertPlaces places_of_experts(const nn::Model& model, int ranks);

// Lets each layer of the model that has experts run this rank's alone, and returns where the
// parameters of each lie. The mesh has experts, and outlives the model. Throws core::RecipeError
// ("/parallel/expert: ...") where the model has none, or a number that its ranks cannot share.
parallel::ExpertPlaces divide_experts(nn::Model& model, const dist::Mesh& mesh);

// Lets such layers see the tokens of all ranks that share sequences; nothing to do where none do.
void share_tokens(nn::Model& model, const dist::Mesh& mesh);

// What such a model runs on where a rank has no batch while others have: as few tokens as its
// layout can divide, whatever they are.
at::Tensor idle_tokens(const dist::Mesh& mesh);

}  // namespace scaletrain::train
