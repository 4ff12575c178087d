// Fine-tuning: frozen parameters and learning-rate scales by parameter.
#pragma once

#include <map>
#include <string>

#include "lib/nn/model.h"
#include "lib/recipe/sections/model.h"

namespace scaletrain::train {

// Freezes the parameters in /model/freeze, or with /model/linear_probe all except the head, and
// puts the model into training mode, except frozen BatchNorm layers. Throws core::RecipeError for a
// pattern without a match, if nothing is left to train, and for a model without a head.
void freeze(const recipe::Model& recipe, nn::Model& model);

// Returns each parameter's factor of the learning rate, by name: layer_decay to the power of the
// number of layers between it and the head (Bao et al., BEiT, 2021, appendix; timm's
// param_groups_layer_decay). {} for a layer_decay of 1. Throws core::RecipeError for a model with
// one layer.
std::map<std::string, double> lr_scales(double layer_decay, nn::Model& model);

}  // namespace scaletrain::train
