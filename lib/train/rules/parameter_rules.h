// Optimizer rules for single parameters, by name, from the recipe and the model.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "lib/nn/model.h"
#include "lib/recipe/sections/optimizer.h"
#include "lib/units/named_parameter.h"

namespace scaletrain::train {

// Throws core::RecipeError at `pointer`, with a similar name, if `pattern` matches none of `names`.
void refuse_idle(const std::string& pointer, const std::string& pattern,
                 const std::vector<std::string>& names);

// Applies optimizer groups: each parameter gets the lr_scale, multiplied with its own, and the
// weight decay of the first group that matches it. Throws core::RecipeError for a group without
// parameters.
void apply_groups(const std::vector<recipe::OptimizerGroup>& groups,
                  std::vector<units::NamedParameter>& parameters);

// Returns the parameters outside the hidden layers: those of the first layer and of the head, or of
// the last layer if the model does not name its head.
std::set<std::string> outer_parameters(nn::Model& model);

}  // namespace scaletrain::train
