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

// Makes hidden linear layers of `model` multiply as the precision says, where it says that: those
// that /precision/keep does not name and whose sizes are multiples of 16. Throws core::RecipeError
// for a pattern that no linear layer fits, and where no layer is left.
void set_linear_products(nn::Model& model, const precision::Precision& precision,
                         const recipe::Precision& recipe);

// The precision's state for a checkpoint, numbers by name; {} where there is none. Reads values.
nlohmann::json scaler_state(precision::Precision& precision);
// Restores `saved`; the state of a run in another precision changes nothing. Throws
// core::CheckpointError if it is invalid.
void restore_scaler(const nlohmann::json& saved, precision::Precision& precision);

// The recipe's optimizer of `owned`, whose tensors have the type of the recipe's precision.
std::unique_ptr<optim::Optimizer> make_optimizer(const recipe::Recipe& recipe,
                                                 std::vector<units::NamedParameter> owned);

}  // namespace scaletrain::train
