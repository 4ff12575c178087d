// Checks recipe keys against facts that only a built model knows: names of parameters and units,
// layers and their sizes.
#pragma once

#include "lib/nn/factory.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::train {

// Builds the model of `recipe` as rank 0 of `world_size` ranks has it, with blank weights on the
// CPU, and everything that a run makes of it, without data (but the card of training tokens at a
// URL) and other ranks. Throws what such a run would throw, core::RecipeError: model.freeze,
// optimizer.groups, recompute.match or precision.keep that name nothing, fp8 without a layer to
// multiply, muon without a matrix, a layout or a loss that the model does not take.
void check_model(recipe::Recipe recipe, int world_size, const nn::Factories& models);

}  // namespace scaletrain::train
