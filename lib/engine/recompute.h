// Activation checkpointing: recomputes activations in backward instead of keeping them (Chen et
// al., Training Deep Nets with Sublinear Memory Cost, 2016). Only a unit's input is kept; the first
// saved tensor that backward asks for runs the unit once more.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "lib/recipe/sections/recompute.h"
#include "lib/units/unit.h"

namespace scaletrain::engine {

// Runs a unit. `again`: called from backward, perhaps on another thread. It must then compute the
// same values, with the same random numbers and precision, and may be left by an exception as soon
// as backward has all tensors that it needs.
using RunUnit = std::function<units::Flow(units::Flow input, bool again)>;

// Runs `run` on `input` with activation checkpointing; gradients have the same bits as without.
// Throws core::InternalError if `run` changes its input in place; backward does if the second run
// saves fewer tensors than the first.
units::Flow run_for_recompute(RunUnit run, const units::Flow& input);

// True for each unit that `recompute` selects, but never for the last unit: backward starts there,
// when its activations are still in memory. Throws core::RecipeError ("/recompute/match: ...") for
// a pattern that matches no unit, and if no unit is selected.
std::vector<bool> recomputed_units(const std::optional<recipe::Recompute>& recompute,
                                   const std::vector<units::Unit>& units);

}  // namespace scaletrain::engine
