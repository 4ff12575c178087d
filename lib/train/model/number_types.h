// Converts a model and an optimizer to the recipe's precision.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "lib/nn/model.h"
#include "lib/optim/optimizer.h"
#include "lib/precision/precision.h"
#include "lib/recipe/sections/precision.h"
#include "lib/units/named_parameter.h"

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::train {

// Converts the parameters of `model` to the precision's dtype, except layers with floating-point
// buffers (BatchNorm), which stay in fp32; for fp64 everything is converted. `blank`: values are
// not initialised and need no conversion.
void convert_weights(nn::Model& model, const precision::Precision& precision, bool blank = false);

// Sets the matrix product of the precision, if it has one, in the hidden linear layers of `model`,
// except layers in /precision/keep and those whose sizes are not multiples of 16. Throws
// core::RecipeError for a pattern that matches no linear layer, and if no layer remains.
void set_linear_products(nn::Model& model, const precision::Precision& precision,
                         const recipe::Precision& recipe);

// Returns the precision's state for a checkpoint, numbers by name; {} if there is none. Reads
// values from the device.
nlohmann::json scaler_state(precision::Precision& precision);
// Restores `saved`; ignores the state of another precision. Throws core::CheckpointError if it is
// invalid.
void restore_scaler(const nlohmann::json& saved, precision::Precision& precision);

// The recipe's optimizer of `owned`, whose tensors have the type of the recipe's precision.
std::unique_ptr<optim::Optimizer> make_optimizer(const recipe::Recipe& recipe,
                                                 std::vector<units::NamedParameter> owned);

}  // namespace scaletrain::train
