// Optimizer rules for single parameters, by name, from the recipe and the model.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "lib/nn/model.h"
#include "lib/recipe/sections/optimizer.h"
#include "lib/units/named_parameter.h"

namespace scaletrain::train {

// Throws core::RecipeError at `pointer`, with a near name, where none of `names` fits `pattern`.
void refuse_idle(const std::string& pointer, const std::string& pattern,
                 const std::vector<std::string>& names);

// Gives each parameter that fits a group the lr_scale of the first such group, times its own, and
// its weight decay. Throws core::RecipeError for a group that gets no parameter.
void apply_groups(const std::vector<recipe::OptimizerGroup>& groups,
                  std::vector<units::NamedParameter>& parameters);

// The parameters of no hidden layer: those of the first layer, and of the head, or where the model
// does not say what that is of the last layer.
std::set<std::string> outer_parameters(nn::Model& model);

}  // namespace scaletrain::train
