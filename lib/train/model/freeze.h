// Fine-tuning: frozen parameters and learning-rate scales by parameter.
#pragma once

#include <map>
#include <string>

#include "lib/nn/model.h"
#include "lib/recipe/sections/model.h"

namespace scaletrain::train {

// Takes the gradient from the parameters that /model/freeze names, or with /model/linear_probe from
// all but the head's, and puts the model into training mode: a frozen BatchNorm leaves it. Throws
// core::RecipeError for a pattern that no parameter fits, where nothing is left to train, and for a
// model without a head.
void freeze(const recipe::Model& recipe, nn::Model& model);

// The learning rate of each parameter over the optimizer's, by name: layer_decay to the power of
// how many layers lie between it and the head (Bao et al., BEiT, 2021, appendix; timm's
// param_groups_layer_decay). Empty for a layer_decay of 1. Throws core::RecipeError for a model of
// one layer.
std::map<std::string, double> lr_scales(double layer_decay, nn::Model& model);

}  // namespace scaletrain::train
