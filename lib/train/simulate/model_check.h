// Checks recipe keys against facts that only a built model knows: names of parameters and units,
// layers and their sizes.
#pragma once

#include "lib/nn/factory.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::train {

// Checks a recipe by building its model as rank 0 of `world_size` ranks would, with blank weights
// on the CPU, and the parts of a run that depend on it, without other ranks or data (except the
// card of training tokens at a URL). Throws the errors of such a run as core::RecipeError: patterns
// of model.freeze, optimizer.groups, recompute.match or precision.keep without a match, fp8 without
// a suitable layer, muon without a matrix, a layout or a loss that the model does not support.
void check_model(recipe::Recipe recipe, int world_size, const nn::Factories& models);

}  // namespace scaletrain::train
